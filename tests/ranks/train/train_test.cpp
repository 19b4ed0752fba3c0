// Training on many ranks is training on one: the same weights after many steps, the same after a
// stop and a resume on another grid, and the same bits on the same one.

#include "tessera/zoo/zoo.h"
#include "tests/ranks/train/training.h"
#include "tests/unit/refusal.h"

namespace tessera::train_test {
namespace {

TEST_F(Training, OnFourRanksIsTrainingOnOne) {
  const Graph graph = network(2);
  const Trained one = train(config("one", 20), {}, graph);
  const Trained four = train(config("four", 20), on_grid({2, 2}), graph);
  const Trained mixed = train(config("mixed", 20), on_grid({1, 3}, 2, {2, 1}), graph);
  EXPECT_EQ(four.outcome.steps, 20);
  EXPECT_LE(difference(four, one), 1e-9);
  EXPECT_LE(difference(mixed, one), 1e-9);
  EXPECT_NEAR(four.outcome.validation->loss, one.outcome.validation->loss, 1e-9);
  EXPECT_EQ(four.outcome.validation->scores.mean_iou, one.outcome.validation->scores.mean_iou);
}

TEST_F(Training, ResumesOnAnotherGrid) {
  const Graph graph = network(2);
  const Trained whole = train(config("whole", 20), on_grid({2, 2}), graph);
  TrainConfig part = config("parts", 20);
  part.checkpoint_interval = 7;
  // The schedule's length stays that of the whole run: the first part is interrupted, not shorter.
  train_one_step(part, on_grid({1, 2}), graph);
  const Trained resumed = train(part, on_grid({3, 1}), graph);
  EXPECT_EQ(resumed.outcome.steps, 20);
  EXPECT_LE(difference(resumed, whole), 1e-9);
}

TEST_F(Training, ResumesWithTheSameBitsOnTheSameGrid) {
  const Graph graph = network(2);
  const Plan plan = on_grid({2, 1});
  const Trained whole = train(config("whole", 12), plan, graph);
  const TrainConfig part = config("parts", 12);
  for (int stops = 0; stops < 3; ++stops) train_one_step(part, plan, graph);
  EXPECT_EQ(difference(train(part, plan, graph), whole), 0);
}

/// What is left of a complete run is what its last start reached.
TEST_F(Training, ACompleteRunSaysWhatItReached) {
  const Graph graph = network(2);
  const TrainOutcome first = train(config("run", 6), on_grid({2, 1}), graph).outcome;
  EXPECT_EQ(first.steps_run(), 6);
  EXPECT_EQ(first.losses.size(), 6u);
  EXPECT_EQ(first.loss, first.losses.back());
  const TrainOutcome again = train(config("run", 6), on_grid({2, 1}), graph).outcome;
  EXPECT_EQ(again.end, TrainEnd::kFinished);
  EXPECT_EQ(again.steps_run(), 0);
  EXPECT_EQ(again.steps, 6);
  EXPECT_TRUE(again.losses.empty());
  EXPECT_EQ(again.loss, first.loss);
  ASSERT_TRUE(again.validation && first.validation);
  EXPECT_EQ(again.validation->loss, first.validation->loss);
  EXPECT_EQ(again.validation->scores.mean_iou, first.validation->scores.mean_iou);
}

TEST_F(Training, OtherSettingsAreAnotherRun) {
  const Graph graph = network(2);
  train(config("run", 2), on_grid({2, 1}), graph);
  TrainConfig other = config("run", 4);
  other.learning_rate = 0.1;
  for (const char* resume : {"auto", "no"}) {
    other.resume = resume;
    expect_refusal(
        [&] {
          train(other, on_grid({2, 1}), graph);
        },
        "--learning-rate was 0.05, is 0.1");
  }
  // From its checkpoint another run may go on, in a folder of its own.
  other.resume = file("run/checkpoints/step-000002");
  expect_refusal([&] { train(other, on_grid({2, 1}), graph); }, "--learning-rate was 0.05, is 0.1");
  other.folder = file("other");
  EXPECT_EQ(train(other, {}, graph).outcome.resumed_at, 2);
  other.resume = "auto";
  EXPECT_EQ(train(other, on_grid({1, 2}), graph).outcome.steps_run(), 0);
  EXPECT_EQ(train(config("run", 4), {}, graph).outcome.steps_run(), 2) << "the first goes on, too";
}

TEST_F(Training, AccumulationIsALargerBatch) {
  // Without a norm, and with as many labels in every batch, the mean of two losses is the loss of
  // both.
  const auto net = [](int64_t batch) {
    return build_model("cnn2d:base=3,depth=2,classes=3,norm=none", {batch, 1, 24, 24});
  };
  TrainConfig small = config("small", 6);
  small.data = "synthetic:kind=classification,samples=16,classes=3";
  small.validation_fraction = 0;
  small.accumulation = 2;
  TrainConfig large = small;
  large.accumulation = 1;
  large.folder += "_large";
  const Trained once = train(large, on_grid({1, 2}), net(4));
  EXPECT_LE(difference(train(small, on_grid({2, 1}), net(2)), once), 1e-9);
  small.folder += "_stages";
  const Plan stages = on_stages(net(2), {{2, 1}, {}}, 2, ScheduleKind::kOneForwardOneBackward);
  EXPECT_LE(difference(train(small, stages, net(2)), once), 1e-9);
}

TEST_F(Training, StartedAgainAfterAnEarlyStopDoesNothing) {
  const Graph graph = network(2);
  TrainConfig config = this->config("early", 100);
  config.patience = 1;
  config.learning_rate = 0;  // nothing improves
  const Trained first = train(config, on_grid({2, 1}), graph);
  EXPECT_EQ(first.outcome.end, TrainEnd::kEarlyStopped);
  EXPECT_LT(first.outcome.steps, 100);
  const Trained again = train(config, on_grid({2, 1}), graph);
  EXPECT_EQ(again.outcome.end, TrainEnd::kEarlyStopped);
  EXPECT_EQ(again.outcome.steps, first.outcome.steps);
}

TEST_F(Training, AdamwAgreesToo) {
  const Graph graph = network(2);
  TrainConfig adamw = config("adamw_one", 8);
  adamw.optimiser = "adamw";
  adamw.learning_rate = 1e-3;
  const Trained one = train(adamw, {}, graph);
  adamw.folder += "_four";
  EXPECT_LE(difference(train(adamw, on_grid({2, 2}), graph), one), 1e-8);
}

}  // namespace
}  // namespace tessera::train_test
