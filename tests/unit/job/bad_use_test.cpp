// What a C++ program can ask for that the command line cannot: each is an error that the caller
// understands, and nothing is cut, cropped or divided by zero.

#include <gtest/gtest.h>

#include <chrono>

#include "tessera/graph/transform.h"
#include "tessera/job/predict.h"
#include "tessera/job/run.h"
#include "tests/unit/job/small_job.h"
#include "tests/unit/refusal.h"
#include "tests/unit/scratch_folder.h"

namespace tessera::bad_use_test {
namespace {

TEST(BadUse, NothingToDo) {
  VerifyOptions no_steps;
  no_steps.steps = 0;
  expect_refusal([&] { verify(small_job(2), no_steps); }, "0 steps; use at least 1");
  BenchOptions nothing;
  nothing.iterations = 0;
  expect_refusal([&] { benchmark(small_job(2), nothing); }, "0 steps after 2; use at least 1");
}

TEST(BadUse, InputsOfAProofThatDoNotFit) {
  const at::Tensor image = at::rand({2, 1, kImageRows, kImageColumns}, at::kDouble);
  const at::Tensor labels = at::zeros({2, kImageRows, kImageColumns}, at::kLong);
  VerifyOptions options;
  options.inputs = {image};
  expect_refusal([&] { verify(small_job(2), options); }, "given 1 input, the graph has 2");
  options.inputs = {at::rand({2, 1, 30, 30}, at::kDouble), labels};
  expect_refusal([&] { verify(small_job(2), options); },
                 "input image is given as 2x1x30x30, the graph takes 2x1x12x10");
  options.inputs = {image, labels};
  EXPECT_TRUE(verify(small_job(2), options).ok);
}

class OtherImages final : public Dataset {
 public:
  OtherImages(int64_t rows, int64_t columns) : shape_{1, rows, columns} {}
  int64_t size() const override { return 4; }
  Shape image_shape() const override { return shape_; }
  int64_t num_classes() const override { return 2; }
  bool per_pixel() const override { return true; }
  void load_image(Sample, const Box&, at::Tensor target) const override { target.zero_(); }
  void load_target(Sample, const Box&, at::Tensor target) const override { target.zero_(); }

 private:
  Shape shape_;
};

/// A class map of the images' corners would look like a result. Training cuts larger images into
/// patches, but images that are too small everywhere are more likely a mistake.
TEST(BadUse, ImagesOfAnotherSizeAreRefused) {
  const ScratchFolder folder;
  const Job job = small_job(2);
  const OtherImages larger(2 * kImageRows, 2 * kImageColumns);
  expect_refusal(
      [&] { predict(job, larger, {.weights = folder / "w", .classes = folder / "c.npy"}); },
      "an image is 1x24x20, the network takes 1x12x10");
  TrainConfig config;
  config.model = "own";
  config.folder = folder / "run";
  const auto smaller = std::make_shared<const OtherImages>(kImageRows / 2, kImageColumns);
  expect_refusal([&] { train(job, resolved(config), smaller); },
                 "an image is 1x6x10, the network takes 1x12x10");
}

TEST(BadUse, AGraphWithoutALoss) {
  Job job = small_job(2);
  job.model.graph = prune(job.graph(), Losses::kDrop);
  expect_refusal([&] { verify(job); }, "put one on its outputs with add_losses()");
}

TEST(BadUse, RanksThatCannotBeLaunched) {
  Job job = small_job(2);
  job.launch.launch = "carrier pigeon";
  expect_refusal([&] { verify(job); }, "carrier pigeon is not known; use threads or mpi");
  job.launch = {.launch = "threads", .threads = 0};
  expect_refusal([&] { verify(job); }, "0 threads per rank; use at least 1");
}

TEST(BadUse, TimeoutsStayWithinTheClocksRange) {
  using std::chrono::milliseconds;
  EXPECT_EQ(timeout_of(1e300), kLongestTimeout);
  EXPECT_EQ(timeout_of(1e-9), milliseconds(1));
  EXPECT_EQ(timeout_of(2.5), milliseconds(2500));
}

/// run.json tells what the run ran with.
TEST(BadUse, ARunIsDescribedByItsJob) {
  const ScratchFolder folder;
  Job job = small_job(2);
  job.seed = 77;
  TrainConfig config;
  config.model = "own";
  config.dtype = "float32";
  config.seed = 1;
  config.steps = 1;
  config.folder = folder / "run";
  train(job, resolved(config), std::make_shared<const SignsOfWaves>(8));
  const std::string description = read_bytes(folder / "run/run.json");
  EXPECT_TRUE(has(description, "\"dtype\": \"float64\"")) << description;
  EXPECT_TRUE(has(description, "\"seed\": 77")) << description;
}

}  // namespace
}  // namespace tessera::bad_use_test
