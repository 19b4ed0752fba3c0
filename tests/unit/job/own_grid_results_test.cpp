// Predictions and scores of images that the network sees in another grid lie in the images' own.

#include <gtest/gtest.h>

#include "tessera/augment/own_grid.h"
#include "tessera/checkpoint/weights.h"
#include "tessera/data/array_reader.h"
#include "tessera/images/array_writer.h"
#include "tessera/job/applied_weights.h"
#include "tessera/job/evaluate.h"
#include "tessera/job/predict.h"
#include "tessera/job/run.h"
#include "tessera/job/run_source.h"
#include "tests/unit/augment/example_images.h"
#include "tests/unit/refusal.h"
#include "tests/unit/scratch_folder.h"

namespace tessera::own_grid_results_test {
namespace {

at::Tensor read(const std::string& path) {
  const ArrayReader file(path);
  const at::Tensor whole = at::empty(file.shape(), at::kDouble);
  file.read(Box::whole(file.shape()), whole);
  return whole;
}

/// A sample of this frame, with smooth numbers, and the same as it is seen after `preparation`.
AppliedData seen_by(const Preparation& preparation, const std::vector<ImageFrame>& frames,
                    const Shape& shape) {
  std::vector<ExampleImages::Image> images;
  for (const ImageFrame& frame : frames) {
    images.push_back(ExampleImages::random(shape, images.size() + 1));
    images.back().frame = frame;
  }
  const auto own = std::make_shared<ExampleImages>(images);
  return {laid_out(own, {}, preparation), own, preparation};
}

class OwnGridResults : public testing::Test {
 protected:
  /// A network with weights in a file, such that every class is the best one somewhere.
  TrainConfig config(const std::string& model, const std::string& input, const std::string& space,
                     const AppliedData& data) {
    TrainConfig config;
    config.model = model;
    config.input = input;
    config.space = space;
    config.dtype = "float64";
    const Job job = resolve_job(config);
    std::vector<at::Tensor> weights;
    for (const Parameter& parameter : job.graph().parameters())
      weights.push_back(initial_value(parameter, /*seed=*/20));
    save_weights(folder / "w.safetensors", job.graph(), weights);
    predict(config, *data.seen,
            {.weights = folder / "w.safetensors", .raw = folder / "unbalanced/"});
    const at::Tensor means = read(folder / "unbalanced/0.npy").flatten(1).mean(1);
    for (size_t i = 0; i < weights.size(); ++i)
      if (job.graph().parameters()[i].name == "head.bias") weights[i] -= means;
    save_weights(folder / "w.safetensors", job.graph(), weights);
    std::filesystem::remove_all(folder / "unbalanced");
    return config;
  }
  PredictRequest all(const std::string& name) const {
    return {.weights = folder / "w.safetensors",
            .classes = folder / (name + "/classes/"),
            .probabilities = folder / (name + "/probabilities/"),
            .raw = folder / (name + "/raw/")};
  }

  /// Results on one placement are those of the grid that is seen, brought back pixel by pixel.
  void expect_brought_back(const TrainConfig& config, const AppliedData& data,
                           const std::string& name) {
    const PredictRequest seen = all(name + "_seen"), back = all(name);
    predict(config, *data.seen, seen);
    predict(config, data, back);
    for (int64_t sample = 0; sample < data.own->size(); ++sample) {
      SCOPED_TRACE(name + " " + std::to_string(sample));
      const std::string file = std::to_string(sample) + ".npy";
      const at::Tensor raw = brought_back(data, sample, read(seen.raw + file));
      const at::Tensor shares = brought_back(data, sample, read(seen.probabilities + file));
      EXPECT_TRUE(read(back.raw + file).allclose(raw, 1e-11, 1e-12));
      EXPECT_TRUE(read(back.probabilities + file).allclose(shares, 1e-5, 1e-6));
      const at::Tensor classes = read(back.classes + file);
      EXPECT_EQ(classes.sizes(), raw.sizes().slice(1));
      EXPECT_GT(at::std(classes).item<double>(), 0) << "all of one class: nothing is compared";
      // Where two classes are as good as equal, float32 files do not say which is larger.
      const at::Tensor best = std::get<0>(shares.topk(2, 0));
      const at::Tensor is_clear = (best[0] - best[1]).gt(1e-5);
      EXPECT_TRUE(
          classes.eq(shares.argmax(0)).logical_or(is_clear.logical_not()).all().item<bool>());
    }
    EXPECT_EQ(names_in(back.classes).size(), static_cast<size_t>(data.own->size()))
        << "a scratch file was left";
  }

  static at::Tensor brought_back(const AppliedData& data, int64_t sample, const at::Tensor& seen) {
    Shape shape = data.own->image_shape_of(sample);
    shape[0] = seen.size(0);
    const ImageReader reader{
        Shape(seen.sizes().begin() + 1, seen.sizes().end()), true,
        [&](const Box& box, at::Tensor target) {
          target.copy_(Operand{seen, Box::whole(seen.sizes().vec())}.view(box));
        }};
    at::Tensor made = at::empty(shape, at::kDouble);
    interpolate(reader, map_from_own_grid(own_axes(*data.own, sample, data.preparation)),
                Box::whole(shape), {Outside::kNearest}, made);
    return made;
  }

  const ScratchFolder folder;
};

/// x of the file runs to the front, y to the left, z down.
const ImageFrame kTurned{.spacing = {3, 2, 1},
                         .affine = std::array<double, 12>{0, -2, 0, 10,  //
                                                          1, 0, 0, -20,  //
                                                          0, 0, -3, 30}};
const ImageFrame kStraight{.spacing = {2, 2, 1.5},
                           .affine = std::array<double, 12>{1.5, 0, 0, 0,  //
                                                            0, 2, 0, 0,    //
                                                            0, 0, 2, 0}};

TEST_F(OwnGridResults, OfVolumesOnAnyPlacement) {
  // One shape in the files, two in the grid that is seen.
  const AppliedData data =
      seen_by({.to_ras = true, .spacing = {2.2, 1.7, 1.3}}, {kTurned, kStraight}, {1, 6, 10, 9});
  ASSERT_NE(data.seen->image_shape_of(0), data.seen->image_shape_of(1));
  const std::string model = "unet3d:base=2,depth=2,classes=3", input = "1x1x8x8x8";
  expect_brought_back(config(model, input, "1x2x2", data), data, "four");
  expect_brought_back(config(model, input, "1x1x1", data), data, "one");
  for (const char* file : {"/raw/0.npy", "/raw/1.npy", "/classes/0.npy", "/classes/1.npy"})
    EXPECT_TRUE(read(folder / ("four" + std::string(file)))
                    .allclose(read(folder / ("one" + std::string(file))), 1e-10, 1e-11))
        << file;
}

TEST_F(OwnGridResults, OfPicturesByWindows) {
  const AppliedData data = seen_by({.spacing = {0.8, 1.1}}, {{.spacing = {1, 1}}}, {1, 90, 110});
  const TrainConfig unet = config("unet2d:base=2,depth=2,classes=3", "1x1x32x32", "2x1", data);
  expect_brought_back(unet, data, "whole");
  PredictRequest windows = all("windows");
  windows.window = {64, 64};
  predict(unet, data, windows);
  EXPECT_TRUE(read(windows.raw + "0.npy").allclose(read(folder / "whole/raw/0.npy"), 1e-10, 1e-11));
  EXPECT_TRUE(read(windows.classes + "0.npy").equal(read(folder / "whole/classes/0.npy")));
}

/// Counts from files: a row for each true class.
ConfusionCounts counted_from(const at::Tensor& classes, const at::Tensor& labels) {
  ConfusionCounts counts(3);
  counts.add_predictions(classes.to(at::kLong), labels, kIgnoreLabel);
  return counts;
}

TEST_F(OwnGridResults, AreWhatIsScored) {
  const AppliedData data =
      seen_by({.to_ras = true, .spacing = {2.2, 1.7, 1.3}}, {kTurned}, {1, 6, 10, 9});
  TrainConfig unet = config("unet3d:base=2,depth=2,classes=3", "1x1x8x8x8", "1x2x1", data);
  PredictRequest request{.weights = folder / "w.safetensors", .classes = folder / "classes.npy"};
  predict(unet, data, request);
  const at::Tensor labels = whole_target(*data.own, 0);
  const ConfusionCounts expected = counted_from(read(request.classes)[0], labels);
  const Evaluation evaluation =
      evaluate(unet, data, {.weights = request.weights, .scratch_folder = folder.path()});
  EXPECT_TRUE(evaluation.came_back);
  EXPECT_EQ(*evaluation.result.counts, expected);
  EXPECT_EQ(evaluation.result.scores.mean_dice, scores(expected).mean_dice);
  // The loss is that of the grid that is seen, and so are the scores without the way back.
  const Evaluation seen = evaluate(unet, *data.seen, {.weights = request.weights});
  EXPECT_EQ(evaluation.result.loss, seen.result.loss);
  EXPECT_NE(seen.result.counts->total(), expected.total());
  ASSERT_EQ(evaluation.surfaces.size(), 3u);
  const std::vector<SurfaceScores> surfaces =
      surface_scores(read(request.classes)[0].to(at::kLong), labels,
                     {.num_classes = 3, .spacing = {3, 2, 1}, .ignored = kIgnoreLabel});
  for (size_t k = 0; k < 3; ++k)
    EXPECT_EQ(evaluation.surfaces[k].surface_dice, surfaces[k].surface_dice);
  EXPECT_EQ(names_in(folder.path()), (std::vector<std::string>{"classes.npy", "w.safetensors"}));
}

TEST_F(OwnGridResults, ImagesBeyondMemoryHaveScoresAndNoLoss) {
  const AppliedData data = seen_by({}, {{}, {}}, {1, 96, 80});
  TrainConfig unet = config("unet2d:base=2,depth=2,classes=3", "1x1x32x32", "2x1", data);
  EvaluateRequest request{.weights = folder / "w.safetensors"};
  const Evaluation whole = evaluate(unet, data, request);
  EXPECT_TRUE(whole.result.has_loss);
  request.window = {64, 64};
  const Evaluation windows = evaluate(unet, data, request);
  EXPECT_EQ(*windows.result.counts, *whole.result.counts);
  EXPECT_FALSE(windows.result.has_loss);
  EXPECT_FALSE(windows.without_loss.empty());
  EXPECT_EQ(to_string(windows.result).find("loss"), std::string::npos);
  for (size_t k = 0; k < 3; ++k)
    EXPECT_EQ(windows.surfaces[k].surface_dice, whole.surfaces[k].surface_dice);
}

/// A NIfTI file of numbers that grow along x, or of two classes along it.
void write_volume(const std::string& path, PixelType type, const ImageFrame& frame) {
  const Shape shape{6, 12, 10};
  const auto file =
      create_array_writer(path, {.shape = shape, .axes = "ZYX", .type = type, .frame = frame});
  std::vector<float> numbers;
  std::vector<uint8_t> labels;
  for (int64_t i = 0; i < 6 * 12 * 10; ++i) {
    numbers.push_back(static_cast<float>(i % 10));
    labels.push_back(i % 10 < 5 ? 0 : 1);
  }
  if (type == PixelType::kUint8)
    file->write(Box::whole(shape), labels.data());
  else
    file->write(Box::whole(shape), numbers.data());
  file->commit();
}

TEST_F(OwnGridResults, AreFilesLikeThoseThatWereGiven) {
  std::filesystem::create_directories(folder / "scans/images");
  std::filesystem::create_directories(folder / "scans/masks");
  try {
    for (const char* name : {"a", "b"}) {
      write_volume(folder / fmt::format("scans/images/{}.nii", name), PixelType::kFloat32, kTurned);
      write_volume(folder / fmt::format("scans/masks/{}.nii", name), PixelType::kUint8, kTurned);
    }
  } catch (const Unsupported& error) {
    GTEST_SKIP() << error.what();
  }
  TrainConfig train_config;
  train_config.model = "unet3d:base=2,depth=2,classes=2";
  train_config.input = "1x1x8x8x8";
  train_config.data = "folder:" + folder / "scans";
  train_config.orientation = "ras";
  train_config.spacing = "2x1.2x1.5";
  train_config.normalise = "z-score";
  train_config.steps = 2;
  train_config.validation_fraction = 0;
  train_config.folder = folder / "run";
  train_config = resolved(train_config);
  train(resolve_training(train_config), train_config);

  TrainConfig of_run = run_config(folder / "run");
  of_run.data = "folder:" + folder / "scans";
  const Job job = resolve_job(of_run);
  const AppliedData data = open_applied_data(of_run, job.graph(), folder / "run");
  const std::string weights = chosen_weights("last", folder / "run");
  predict(of_run, data,
          {.weights = weights, .classes = folder / "out/", .probabilities = folder / "shares/"});
  EXPECT_EQ(names_in(folder / "out"), (std::vector<std::string>{"a.nii", "b.nii"}));
  const ArrayReader image(folder / "scans/images/b.nii");
  for (const char* result : {"out/b.nii", "shares/b.nii"}) {
    const ArrayReader file(folder / result);
    EXPECT_EQ(file.shape().back(), image.shape().back());
    EXPECT_EQ(file.file().info().frame, image.file().info().frame) << result;
  }
  EXPECT_EQ(ArrayReader(folder / "out/b.nii").shape(), image.shape());
  const Evaluation evaluation = evaluate(of_run, data, {.weights = weights});
  EXPECT_EQ(evaluation.result.counts->total(), 2 * 6 * 12 * 10);
  // The default format would take the place of what is read.
  for (const char* taken : {"scans/masks/../images/", "scans/masks/"})
    expect_refusal([&] { predict(of_run, data, {.weights = weights, .classes = folder / taken}); },
                   "would overwrite what is read");
}

}  // namespace
}  // namespace tessera::own_grid_results_test
