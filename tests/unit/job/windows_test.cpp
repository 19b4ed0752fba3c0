// Images by windows are images as a whole, or are refused; sizes that differ from the network's;
// and what a prediction becomes in files.

#include "tessera/job/windows.h"

#include <gtest/gtest.h>

#include "tessera/checkpoint/weights.h"
#include "tessera/data/array_reader.h"
#include "tessera/job/predict.h"
#include "tests/unit/refusal.h"
#include "tests/unit/scratch_folder.h"

namespace tessera::windows_test {
namespace {

/// Waves without labels; each sample has a size of its own.
class WavesOfSizes final : public Dataset {
 public:
  explicit WavesOfSizes(std::vector<Shape> sizes) : sizes_(std::move(sizes)) {}
  int64_t size() const override { return std::ssize(sizes_); }
  Shape image_shape() const override { return {}; }
  Shape image_shape_of(int64_t sample) const override { return sizes_[sample]; }
  std::string name_of(int64_t sample) const override { return "scan" + std::to_string(sample); }
  bool has_targets() const override { return false; }
  int64_t num_classes() const override { return 0; }
  bool per_pixel() const override { return false; }
  void load_image(Sample sample, const Box& box, at::Tensor target) const override {
    const at::Tensor y = at::arange(box[1].begin, box[1].end, at::kDouble).unsqueeze(1);
    const at::Tensor x = at::arange(box[2].begin, box[2].end, at::kDouble).unsqueeze(0);
    target.copy_(at::sin(0.7 * y + 0.3 * x * x + static_cast<double>(sample.index)).unsqueeze(0));
  }
  void load_target(Sample, const Box&, at::Tensor) const override { FAIL() << "labels are read"; }

 private:
  std::vector<Shape> sizes_;
};

at::Tensor read(const std::string& path) {
  const ArrayReader file(path);
  const at::Tensor whole = at::empty(file.shape(), at::kDouble);
  file.read(Box::whole(file.shape()), whole);
  return whole;
}

class Windows : public testing::Test {
 protected:
  /// A network with weights in a file, on 2 x 1 ranks; less of class 1 by what it is ahead.
  JobConfig config(const std::string& model, double lead_of_class_1 = 0) {
    JobConfig config;
    config.model = model;
    config.input = "1x1x32x32";
    config.space = "2x1";
    config.dtype = "float64";
    const Job job = resolve_job(config);
    std::vector<at::Tensor> weights;
    for (const Parameter& parameter : job.graph().parameters()) {
      weights.push_back(initial_value(parameter, /*seed=*/20));
      if (parameter.name == "head.bias") weights.back()[1] -= lead_of_class_1;
    }
    save_weights(folder / "w.safetensors", job.graph(), weights);
    return config;
  }
  PredictRequest raw(const std::string& name) const {
    PredictRequest request;
    request.weights = folder / "w.safetensors";
    request.raw = folder / name;
    return request;
  }

  const ScratchFolder folder;
};

const std::string kUNet = "unet2d:base=2,depth=2,classes=2";

TEST_F(Windows, GiveTheNumbersOfTheWholeImage) {
  const JobConfig unet = config(kUNet);
  for (const Shape& size : {Shape{1, 112, 100}, Shape{1, 64, 160}, Shape{1, 131, 97}}) {
    const WavesOfSizes data({size});
    predict(unet, data, raw("whole.npy"));
    for (const Shape& most : {Shape{60, 60}, Shape{64, 200}, Shape{80, 100}}) {
      PredictRequest by_windows = raw("windows.npy");
      by_windows.window = most;
      predict(unet, data, by_windows);
      EXPECT_TRUE(read(by_windows.raw).allclose(read(folder / "whole.npy"), 1e-11, 1e-12))
          << to_string(size) << " by " << to_string(most);
      by_windows.flips = true;
      PredictRequest turned = raw("turned.npy");
      turned.flips = true;
      predict(unet, data, turned);
      predict(unet, data, by_windows);
      EXPECT_TRUE(read(by_windows.raw).allclose(read(turned.raw), 1e-11, 1e-12)) << "flips";
    }
  }
}

TEST_F(Windows, AreTakenWhereTheImageDoesNotFit) {
  JobConfig small = config(kUNet);
  const WavesOfSizes data({{1, 256, 128}});
  predict(small, data, raw("whole.npy"));
  small.memory = "700KiB";
  std::string reason;
  JobConfig whole = small;
  whole.input = "1x1x256x128";
  ASSERT_FALSE(prediction_fits(resolve_job(whole), &reason)) << "the limit is too large";
  predict(small, data, raw("windows.npy"));
  EXPECT_TRUE(read(folder / "windows.npy").allclose(read(folder / "whole.npy"), 1e-11, 1e-12));
  small.memory = "20KiB";
  EXPECT_THROW(predict(small, data, raw("none.npy")), OutOfMemory);
}

TEST_F(Windows, OfStridesThatFitNoWindowAreRefused) {
  JobConfig small = config("attention_unet2d:base=2,depth=3,classes=2");
  const WavesOfSizes data({{1, 131, 131}});
  small.memory = "300KiB";
  EXPECT_THROW(predict(small, data, raw("none.npy")), OutOfMemory);
  small.memory = "";
  PredictRequest request = raw("none.npy");
  request.window = {100, 100};
  expect_refusal([&] { predict(small, data, request); }, "windows begin on multiples of");
}

TEST_F(Windows, OfANetworkThatSeesTheWholeImageAreRefused) {
  const WavesOfSizes data({{1, 96, 96}});
  PredictRequest request = raw("x.npy");
  request.window = {64, 64};
  const JobConfig normalised = config(kUNet + ",norm=instance");
  expect_refusal([&] { predict(normalised, data, request); },
                 "takes statistics of the whole image");
  const JobConfig unet = config(kUNet);
  request.window = {8, 8};
  expect_refusal([&] { predict(unet, data, request); }, "not larger than what the network sees");
  request.window = {64};
  expect_refusal([&] { predict(unet, data, request); }, "[--window] 64 has 1 axes");
}

TEST_F(Windows, EverySizeHasItsFile) {
  const JobConfig unet = config(kUNet);
  const std::vector<Shape> sizes{{1, 32, 32}, {1, 48, 36}, {1, 32, 32}};
  const WavesOfSizes data(sizes);
  PredictRequest request = raw("out/");
  request.classes = folder / "classes/";
  predict(unet, data, request);
  EXPECT_EQ(names_in(folder / "out"),
            (std::vector<std::string>{"scan0.npy", "scan1.npy", "scan2.npy"}));
  for (int64_t sample = 0; sample < 3; ++sample) {
    const std::string name = data.name_of(sample) + ".npy";
    EXPECT_EQ(ArrayReader(folder / ("out/" + name)).shape(),
              (Shape{2, sizes[sample][1], sizes[sample][2]}));
    EXPECT_EQ(read(folder / ("classes/" + name)).numel(), sizes[sample][1] * sizes[sample][2]);
    EXPECT_TRUE(read(folder / ("classes/" + name))
                    .equal(read(folder / ("out/" + name)).argmax(0).to(at::kDouble)));
  }
  expect_refusal([&] { predict(unet, data, raw("one.npy")); }, "give a folder for a file each");
  const WavesOfSizes deep({{2, 32, 32}});
  expect_refusal([&] { predict(unet, deep, raw("one.npy")); }, "the network takes 1 channels");
}

TEST_F(Windows, LargestComponentsAreOfTheWholeMap) {
  const JobConfig unet = config(kUNet);
  const WavesOfSizes data({{1, 64, 64}});
  PredictRequest plain = raw("raw.npy");
  plain.classes = folder / "plain.npy";
  predict(unet, data, plain);
  // A head with which half of the pixels are of either class.
  const at::Tensor outputs = read(plain.raw)[0];
  config(kUNet, (outputs[1] - outputs[0]).median().item<double>());
  predict(unet, data, plain);
  PredictRequest request = raw("raw.npy");
  request.classes = folder / "cleaned.npy";
  request.largest_component = "all";
  predict(unet, data, request);
  const at::Tensor before = read(plain.classes), after = read(request.classes);
  ASSERT_GT(before.sum().item<double>(), after.sum().item<double>()) << "there was one component";
  EXPECT_GT(after.sum().item<double>(), 0);
  EXPECT_TRUE(after.le(before).all().item<bool>());
  request.window = {40, 40};
  request.classes = folder / "by_windows.npy";
  predict(unet, data, request);
  EXPECT_TRUE(read(request.classes).equal(after));
  request.largest_component = "2";
  expect_refusal([&] { predict(unet, data, request); }, "use all, or numbers from 1 to 1");
}

}  // namespace
}  // namespace tessera::windows_test
