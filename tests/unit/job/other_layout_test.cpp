// A device has an order of its own for images. Whatever looks at results, parameters or the
// optimiser's state from outside of a step must not notice: here it is the CPU, with channels last.

#include <gtest/gtest.h>

#include "tessera/checkpoint/checkpoint.h"
#include "tessera/data/array_reader.h"
#include "tessera/data/open.h"
#include "tessera/job/applied_weights.h"
#include "tessera/job/evaluate.h"
#include "tessera/job/predict.h"
#include "tessera/job/run.h"
#include "tests/unit/scratch_folder.h"

namespace tessera::other_layout_test {
namespace {

constexpr double kClose = 1e-11;

/// A U-Net with running statistics on two ranks, an optimiser with state, averages of the weights,
/// and what a step does besides: clipping, accumulation, a copy of what a bad step would spoil.
TrainConfig blobs(const std::string& folder) {
  TrainConfig config;
  config.model = "unet2d:base=2,depth=2,classes=3";
  config.input = "2x1x24x20";
  config.dtype = "float64";
  config.device = "cpu";
  config.space = "2x1";
  config.data = "synthetic:samples=14,classes=3";
  config.validation_fraction = 0.3;
  config.steps = 6;
  config.optimiser = "adam";
  config.learning_rate = 0.1;
  config.ema = 0.9;
  config.clip_norm = 0.5;
  config.accumulation = 2;
  config.on_nan = "skip";
  config.loss = "0.5*cross_entropy+0.5*dice";
  config.dump_gradients = folder + ".gradients.safetensors";
  config.folder = folder;
  return resolved(config);
}

Job with_layout(Job job, ImageLayout layout) {
  job.device.layout = layout;
  return job;
}

double difference(const NamedTensors& a, const NamedTensors& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    EXPECT_EQ(a[i].first, b[i].first);
    EXPECT_EQ(a[i].second.sizes(), b[i].second.sizes());
    if (a[i].second.numel() > 0)
      largest = std::max(
          largest,
          (a[i].second.to(at::kDouble) - b[i].second.to(at::kDouble)).abs().max().item<double>());
  }
  return largest;
}

NamedTensors tensors_in(const std::string& path) {
  const SafetensorsFile file(path);
  NamedTensors tensors;
  for (const TensorEntry& entry : file.entries())
    tensors.emplace_back(entry.name, file.tensor(entry.name));
  return tensors;
}

NamedTensors state_of(const std::string& run) {
  CheckpointStore store(run + "/checkpoints", 3);
  return store.load(store.latest_valid().value()).tensors;
}

class OtherLayout : public testing::Test {
 protected:
  TrainConfig config(ImageLayout layout) const {
    return blobs(folder / (layout == ImageLayout::kContiguous ? "contiguous" : "last"));
  }
  TrainOutcome trained(ImageLayout layout) const {
    const TrainConfig own = config(layout);
    return train(with_layout(resolve_training(own), layout), own);
  }
  at::Tensor predicted(ImageLayout layout, PredictRequest request) const {
    TrainConfig own = config(ImageLayout::kContiguous);
    request.weights = chosen_weights("last", folder / "contiguous");
    const std::string path = folder / "predicted.npy";
    (request.largest_component.empty() ? request.raw : request.classes) = path;
    const Job job = with_layout(resolve_job(own), layout);
    predict(job, *open_dataset(own.data, {1, 24, 20}, own.seed, 3), request);
    const ArrayReader file(path);
    const at::Tensor whole = at::empty(file.shape(), at::kDouble);
    file.read(Box::whole(file.shape()), whole);
    return whole;
  }

  const ScratchFolder folder;
};

TEST_F(OtherLayout, TrainingGivesTheSameNumbers) {
  const TrainOutcome one = trained(ImageLayout::kContiguous);
  const TrainOutcome other = trained(ImageLayout::kChannelsLast);
  ASSERT_EQ(one.losses.size(), 6u);
  for (size_t step = 0; step < one.losses.size(); ++step)
    EXPECT_NEAR(one.losses[step], other.losses[step], kClose) << step;
  ASSERT_TRUE(one.validation && other.validation);
  EXPECT_NEAR(one.validation->loss, other.validation->loss, kClose);
  EXPECT_EQ(one.validation->counts, other.validation->counts);
  EXPECT_LT(difference(state_of(folder / "contiguous"), state_of(folder / "last")), 1e-9);
  EXPECT_LT(difference(tensors_in(folder / "contiguous.gradients.safetensors"),
                       tensors_in(folder / "last.gradients.safetensors")),
            kClose);
}

/// A checkpoint does not depend on the device either.
TEST_F(OtherLayout, ARunGoesOnWithTheOther) {
  const TrainOutcome whole = trained(ImageLayout::kContiguous);
  TrainConfig half = config(ImageLayout::kChannelsLast);
  half.steps = 3;
  train(with_layout(resolve_training(half), ImageLayout::kContiguous), half);
  const TrainOutcome resumed = trained(ImageLayout::kChannelsLast);
  EXPECT_EQ(resumed.resumed_at, 3);
  EXPECT_NEAR(resumed.loss, whole.loss, kClose);
}

TEST_F(OtherLayout, PredictionsAndScoresAreTheSame) {
  trained(ImageLayout::kContiguous);
  for (const PredictRequest& request :
       {PredictRequest{}, PredictRequest{.flips = true},
        PredictRequest{.flips = true, .largest_component = "all"}}) {
    const at::Tensor one = predicted(ImageLayout::kContiguous, request);
    EXPECT_TRUE(one.allclose(predicted(ImageLayout::kChannelsLast, request), kClose, kClose));
    EXPECT_GT(one.std().item<double>(), 0) << "nothing is compared";
  }
  const TrainConfig own = config(ImageLayout::kContiguous);
  const auto data = open_dataset(own.data, {1, 24, 20}, own.seed, 3);
  const EvaluateRequest request{.weights = chosen_weights("last", folder / "contiguous")};
  const auto scored = [&](ImageLayout layout) {
    return evaluate(with_layout(resolve_job(own), layout), own, AppliedData::as_it_is(*data),
                    request);
  };
  const Evaluation one = scored(ImageLayout::kContiguous),
                   other = scored(ImageLayout::kChannelsLast);
  EXPECT_NEAR(one.result.loss, other.result.loss, kClose);
  EXPECT_EQ(one.result.counts, other.result.counts);
  ASSERT_EQ(one.surfaces.size(), 3u);
  EXPECT_EQ(one.surfaces[1].hausdorff95, other.surfaces[1].hausdorff95);
}

TEST_F(OtherLayout, ProofsAndStopwatchTakeTheJobsDevice) {
  const Job job =
      with_layout(resolve_training(config(ImageLayout::kContiguous)), ImageLayout::kChannelsLast);
  VerifyOptions verification;
  verification.optimiser = OptimiserKind::kAdamW;
  const VerifyReport report = verify(job, verification);
  EXPECT_TRUE(report.ok) << report.failure;
  EXPECT_EQ(report.device, "cpu");
  BenchOptions timing;
  timing.iterations = 1;
  timing.warmup = 0;
  const BenchReport timed = benchmark(job, timing);
  EXPECT_EQ(timed.devices, (std::vector<std::string>{"cpu", "cpu"}));
  EXPECT_EQ(timed.per_rank[0].device_bytes, 0);
}

}  // namespace
}  // namespace tessera::other_layout_test
