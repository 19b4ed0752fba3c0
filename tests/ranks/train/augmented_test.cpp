// Training on patches that are cut, bent and changed at random is the same on any number of ranks:
// each computes its own box, and all boxes are those of one patch.

#include <fstream>
#include <nlohmann/json.hpp>

#include "tessera/checkpoint/checkpoint.h"
#include "tessera/runtime/rank_session.h"
#include "tests/ranks/train/training.h"
#include "tests/unit/refusal.h"

namespace tessera::augmented_test {
namespace {

class AugmentedTraining : public Training {
 protected:
  /// Patches of what the network takes, from images that are larger.
  TrainConfig augmented(const std::string& run, int64_t steps) const {
    TrainConfig made = config(run, steps);
    made.data = "synthetic:samples=6,classes=3,size=60x52";
    made.normalise = "z-score:over=set";
    made.crop = "40x36";
    made.crop_centres = "classes:share=0.5";
    made.patches_per_image = 3;
    made.augment =
        "flip+rotate90+affine:rotate=30,scale=0.2,translate=0.1+elastic:size=2,spacing=12"
        "+blur:sigma=1.5+gamma+contrast+brightness+noise:std=0.2+dropout";
    return made;
  }
};

TEST_F(AugmentedTraining, OnFourRanksIsTrainingOnOne) {
  const Graph graph = network(2);
  const Trained one = train(augmented("one", 20), {}, graph);
  const Trained four = train(augmented("four", 20), on_grid({2, 2}), graph);
  EXPECT_EQ(four.outcome.steps, 20);
  EXPECT_LE(difference(four, one), 1e-9);
  EXPECT_NEAR(four.outcome.validation->loss, one.outcome.validation->loss, 1e-9);
  EXPECT_EQ(four.outcome.validation->scores.mean_iou, one.outcome.validation->scores.mean_iou);
  // The changes do change something.
  TrainConfig plain = augmented("plain", 20);
  plain.augment = "";
  EXPECT_GT(difference(train(plain, {}, graph), one), 1e-6);
}

TEST_F(AugmentedTraining, KeepsTheNumbersOfItsImages) {
  const Graph graph = network(2);
  const Trained run = train(augmented("run", 2), on_grid({2, 1}), graph);
  const TrainingState state =
      CheckpointStore(run.outcome.checkpoint, 1).load(run.outcome.checkpoint);
  const Intensities kept = intensities_from_json(state.metadata.at("intensities"));
  EXPECT_EQ(kept.kind, Intensities::Kind::kFixed);
  ASSERT_EQ(kept.means.size(), 1u);
  EXPECT_GT(kept.deviations[0], 0.1);
  std::ifstream description(file("run/run.json"));
  const nlohmann::json json = nlohmann::json::parse(description);
  EXPECT_EQ(intensities_from_json(json.at("intensities").dump()), kept);
  // Another augmentation is another run.
  TrainConfig other = augmented("run", 4);
  other.augment = "flip";
  expect_refusal([&] { train(other, {}, graph); }, "--augment was");
}

/// Images that have changed since the run began would be normalised in another way.
TEST_F(AugmentedTraining, OtherNumbersAreNotResumed) {
  const Graph graph = network(2);
  train(augmented("run", 2), {}, graph);
  TrainingJob job = prepare_training(augmented("run", 4), graph, {}, at::kDouble);
  job.intensities.means[0] += 1e-3;
  const auto resume = [&] {
    run_on_threads(1, 1, 60,
                   [&](Transport& transport) { Trainer(job, &transport, "threads").run(); });
  };
  expect_refusal(resume, "was made with images normalised by");
  EXPECT_EQ(train(augmented("run", 4), {}, graph).outcome.resumed_at, 2);
}

TEST_F(AugmentedTraining, PatchesAreRefusedWhereTheyDoNotFit) {
  TrainConfig wrong = augmented("run", 2);
  wrong.crop = "32x32";
  expect_refusal([&] { train(wrong, {}, network(2)); },
                 "32x32 is not what the network takes, 40x36");
  wrong = augmented("run", 2);
  wrong.augment = "fip";
  expect_refusal([&] { train(wrong, {}, network(2)); }, "did you mean flip");
}

}  // namespace
}  // namespace tessera::augmented_test
