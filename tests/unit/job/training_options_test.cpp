// What `train` does with a job besides its steps: weights of classes by the labels, and averages of
// the weights that `predict` finds again.

#include <gtest/gtest.h>

#include "tessera/job/class_weights.h"
#include "tessera/job/predict.h"
#include "tessera/job/run.h"
#include "tests/unit/job/small_job.h"
#include "tests/unit/refusal.h"
#include "tests/unit/scratch_folder.h"

namespace tessera::training_options_test {
namespace {

TrainConfig training_in(const std::string& folder) {
  TrainConfig config;
  config.model = "signs";
  config.dtype = "float64";
  config.validation_fraction = 0.25;
  config.learning_rate = 0.5;
  config.steps = 3;
  config.folder = folder;
  return resolved(config);
}

/// Labels with more of one class than of the other.
class FewPositive final : public Dataset {
 public:
  explicit FewPositive(double threshold) : threshold_(threshold) {}
  int64_t size() const override { return 8; }
  Shape image_shape() const override { return waves_.image_shape(); }
  int64_t num_classes() const override { return 2; }
  bool per_pixel() const override { return true; }
  void load_image(Sample sample, const Box& box, at::Tensor target) const override {
    waves_.load_image(sample, box, target);
  }
  void load_target(Sample sample, const Box& box, at::Tensor target) const override {
    at::Tensor image = at::empty({1, box[0].size(), box[1].size()}, at::kDouble);
    waves_.load_image(sample, {{0, 1}, box[0], box[1]}, image);
    target.copy_(image[0].gt(threshold_));
  }

 private:
  double threshold_;
  SignsOfWaves waves_{8};
};

TEST(TrainingOptions, ClassWeightsAreThoseOfTheLabels) {
  const ScratchFolder folder;
  const Job job = small_job(2);
  TrainConfig config = training_in(folder / "auto");
  config.loss = "cross_entropy:class_weights=auto";
  const auto data = std::make_shared<FewPositive>(0.8);
  const std::vector<double> weights = counted_class_weights(job, config, data);
  ASSERT_EQ(weights.size(), 2u);
  EXPECT_LT(weights[0], 1);
  EXPECT_GT(weights[1], 1.5);
  const TrainOutcome counted = train(job, config, data);

  TrainConfig written = training_in(folder / "written");
  written.loss = fmt::format("cross_entropy:class_weights={}/{}", weights[0], weights[1]);
  Job same = job;
  same.model.graph = with_class_weights(job.graph(), written, {});
  EXPECT_EQ(train(same, written, data).loss, counted.loss);
  EXPECT_NE(train(job, training_in(folder / "plain"), data).loss, counted.loss);
}

TEST(TrainingOptions, ClassWeightsStayThoseOfTheRun) {
  const ScratchFolder folder;
  const Job job = small_job(2);
  TrainConfig config = training_in(folder / "run");
  config.loss = "cross_entropy:class_weights=auto";
  train(job, config, std::make_shared<FewPositive>(0.8));
  config.steps = 5;
  const std::string message =
      refusal([&] { train(job, config, std::make_shared<FewPositive>(0.5)); });
  EXPECT_TRUE(has(message, "was made with the class weights 0.")) << message;
  EXPECT_TRUE(has(message, "--resume no")) << message;
  EXPECT_EQ(train(job, config, std::make_shared<FewPositive>(0.8)).resumed_at, 3);
}

TEST(TrainingOptions, ACheckpointIsAppliedByItsAverages) {
  const ScratchFolder folder;
  const Job job = small_job(2);
  TrainConfig config = training_in(folder / "run");
  config.ema = 0.5;
  config.save_weights = folder / "w.safetensors";
  const SignsOfWaves data(4);
  const TrainOutcome outcome = train(job, config, std::make_shared<SignsOfWaves>(8));
  predict(job, data, {.weights = config.save_weights, .raw = folder / "saved.npy"});
  predict(job, data, {.weights = outcome.checkpoint, .raw = folder / "checkpoint.npy"});
  EXPECT_EQ(read_bytes(folder / "checkpoint.npy"), read_bytes(folder / "saved.npy"));
  TrainConfig plain = training_in(folder / "plain");
  plain.save_weights = folder / "plain.safetensors";
  train(job, plain, std::make_shared<SignsOfWaves>(8));
  predict(job, data, {.weights = plain.save_weights, .raw = folder / "plain.npy"});
  EXPECT_NE(read_bytes(folder / "plain.npy"), read_bytes(folder / "saved.npy"));
}

}  // namespace
}  // namespace tessera::training_options_test
