// Evaluation gives what validation gave, and one set in several sizes is one set.

#include "tessera/job/evaluate.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tessera/data/open.h"
#include "tessera/data/subset.h"
#include "tessera/job/applied_weights.h"
#include "tessera/job/run.h"
#include "tessera/job/run_source.h"
#include "tests/unit/refusal.h"
#include "tests/unit/scratch_folder.h"

namespace tessera::evaluate_test {
namespace {

TrainConfig blobs(const std::string& folder) {
  TrainConfig config;
  config.model = "unet2d:base=2,depth=2,classes=3";
  config.input = "4x1x24x20";
  config.space = "2x1";
  config.data = "synthetic:samples=20,classes=3";
  config.validation_fraction = 0.3;
  config.steps = 6;
  config.optimiser = "adam";
  config.monitor = "accuracy";
  config.loss = "cross_entropy:class_weights=auto";
  config.folder = folder;
  return resolved(config);
}

TEST(Evaluate, GivesWhatValidationGave) {
  const ScratchFolder folder;
  const TrainConfig config = blobs(folder / "run");
  const TrainOutcome outcome = train(resolve_training(config), config);
  ASSERT_TRUE(outcome.validation);
  const TrainConfig of_run = run_config(folder / "run");
  const Job job = resolve_job(of_run);
  const AppliedData opened = open_applied_data(of_run, job.graph());
  const DatasetSplit split = split_dataset(opened.seen, config.validation_fraction, config.seed);
  const Evaluation same =
      evaluate(of_run, *split.validation, {.weights = chosen_weights("last", folder / "run")});
  EXPECT_EQ(same.samples, 6);
  EXPECT_EQ(same.result.loss, outcome.validation->loss);
  EXPECT_EQ(same.result.scores.accuracy, outcome.validation->scores.accuracy);
  EXPECT_EQ(same.result.scores.mean_iou, outcome.validation->scores.mean_iou);
  EXPECT_EQ(same.result.scores.dice, outcome.validation->scores.dice);
  ASSERT_EQ(same.surfaces.size(), 3u);
  EXPECT_TRUE(same.without_surfaces.empty());
  TrainConfig elsewhere = of_run;
  elsewhere.space = "1x3";
  const Evaluation other =
      evaluate(elsewhere, *split.validation, {.weights = chosen_weights("last", folder / "run")});
  EXPECT_EQ(other.result.counts, same.result.counts);
  for (size_t k = 0; k < 3; ++k)
    EXPECT_EQ(fmt::format("{} {}", other.surfaces[k].hausdorff95, other.surfaces[k].surface_dice),
              fmt::format("{} {}", same.surfaces[k].hausdorff95, same.surfaces[k].surface_dice));
}

/// Samples of two sets of blobs, the second one larger, one after the other.
class TwoSizes final : public Dataset {
 public:
  TwoSizes()
      : small_(open_dataset("synthetic:samples=3,classes=3", {1, 24, 20}, 5, 3)),
        large_(open_dataset("synthetic:samples=2,classes=3", {1, 32, 40}, 5, 3)) {}
  int64_t size() const override { return 5; }
  Shape image_shape() const override { return {}; }
  Shape image_shape_of(int64_t i) const override { return of(i).image_shape(); }
  Shape target_shape_of(int64_t i) const override { return of(i).target_shape(); }
  int64_t num_classes() const override { return 3; }
  bool per_pixel() const override { return true; }
  void load_image(Sample i, const Box& box, at::Tensor target) const override {
    of(i).load_image(i / 2, box, target);
  }
  void load_target(Sample i, const Box& box, at::Tensor target) const override {
    of(i).load_target(i / 2, box, target);
  }
  const Dataset& small() const { return *small_; }
  const Dataset& large() const { return *large_; }

 private:
  const Dataset& of(int64_t sample) const { return sample % 2 == 0 ? *small_ : *large_; }
  std::unique_ptr<Dataset> small_, large_;
};

TEST(Evaluate, SizesThatDifferAreOneSet) {
  const ScratchFolder folder;
  TrainConfig config = blobs(folder / "run");
  config.loss.clear();
  train(resolve_training(config), config);
  const TrainConfig of_run = run_config(folder / "run");
  const EvaluateRequest request{.weights = chosen_weights("best", folder / "run")};
  const TwoSizes data;
  const Evaluation both = evaluate(of_run, data, request);
  const Evaluation small = evaluate(of_run, data.small(), request);
  const Evaluation large = evaluate(of_run, data.large(), request);
  ConfusionCounts sum = *small.result.counts;
  sum.add(*large.result.counts);
  EXPECT_EQ(both.result.counts, sum);
  EXPECT_EQ(both.result.scores.mean_iou, scores(sum).mean_iou);
  const double weights = small.result.weight + large.result.weight;
  EXPECT_NEAR(
      both.result.loss,
      (small.result.weight * small.result.loss + large.result.weight * large.result.loss) / weights,
      1e-12);
}

TEST(Evaluate, TheBestIsTheRunsOwn) {
  const ScratchFolder folder;
  TrainConfig config = blobs(folder / "run");
  config.loss.clear();
  config.save_weights = "best";
  const TrainOutcome outcome = train(resolve_training(config), config);
  const std::string best = chosen_weights("", folder / "run");
  EXPECT_EQ(best, chosen_weights("best", folder / "run"));
  const TrainConfig of_run = run_config(folder / "run");
  const Job job = resolve_job(of_run);
  const AppliedData data = open_applied_data(of_run, job.graph());
  const Evaluation by_checkpoint = evaluate(of_run, data, {.weights = best});
  const Evaluation by_file = evaluate(of_run, data, {.weights = folder / "run/best.safetensors"});
  EXPECT_EQ(by_file.result.loss, by_checkpoint.result.loss);
  expect_refusal([&] { chosen_weights("best", ""); }, "give the run's folder");
  expect_refusal([&] { chosen_weights("last", folder / "none"); }, "has no checkpoint");
  config.validation_fraction = 0;
  config.monitor = "loss";
  config.folder = folder / "other";
  expect_refusal([&] { train(resolve_training(config), config); }, "best needs validation");
}

}  // namespace
}  // namespace tessera::evaluate_test
