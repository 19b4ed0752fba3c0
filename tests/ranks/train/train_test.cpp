// Training on many ranks is training on one: the same weights after many steps, the same after a
// stop and a resume on another grid, and the same bits on the same one.

#include <gtest/gtest.h>

#include <filesystem>

#include "tessera/checkpoint/checkpoint.h"
#include "tessera/ops/convolution.h"
#include "tessera/ops/cross_entropy.h"
#include "tessera/ops/dropout.h"
#include "tessera/ops/relu.h"
#include "tessera/train/trainer.h"
#include "tessera/trial/rank_session.h"
#include "tessera/zoo/zoo.h"

namespace tessera {
namespace {

/// Convolutions, a norm, dropout and pixel labels: what could depend on the grid.
Graph network() {
  Graph graph = build_model("fcn2d:width=0.02,classes=3,dropout=0.4", {2, 1, 40, 36});
  return graph;
}

struct Trained {
  TrainOutcome outcome;
  std::vector<at::Tensor> parameters;
};

class Training : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "tessera_train_" + std::to_string(getpid());
    std::filesystem::remove_all(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  TrainConfig config(const std::string& run, int64_t steps) const {
    TrainConfig config;
    config.model = "fcn2d";
    config.data = "synthetic:samples=12,classes=3";
    config.validation_fraction = 0.25;
    config.epochs = std::nullopt;
    config.steps = steps;
    config.seed = 7;
    config.dtype = "float64";
    config.learning_rate = 0.05;
    config.schedule = "cosine";
    config.clip_norm = 5;
    config.folder = folder_ + "/" + run;
    return resolved(config);
  }

  Trained train(const TrainConfig& config, const Plan& plan, const Graph& graph = network()) const {
    const TrainingJob job = prepare_training(config, graph, plan, at::kDouble);
    Trained run;
    run_on_threads(plan.num_ranks(), 1, 60, [&](Transport& transport) {
      Trainer trainer(job, &transport, "threads");
      const TrainOutcome outcome = trainer.run();
      if (transport.rank() != transport.size() - 1) return;
      run.outcome = outcome;
      for (const at::Tensor& value : trainer.parameters().values())
        run.parameters.push_back(value.clone());
    });
    return run;
  }

  static double difference(const Trained& a, const Trained& b) {
    double worst = 0;
    for (size_t i = 0; i < a.parameters.size(); ++i) {
      const double scale = std::max(1e-3, b.parameters[i].abs().max().item<double>());
      worst =
          std::max(worst, (a.parameters[i] - b.parameters[i]).abs().max().item<double>() / scale);
    }
    return worst;
  }

  std::string folder_;
};

TEST_F(Training, OnFourRanksIsTrainingOnOne) {
  const Trained one = train(config("one", 20), {});
  const Trained four = train(config("four", 20), {1, {2, 2}, {}});
  const Trained mixed = train(config("mixed", 20), {2, {1, 3}, {2, 1}});
  EXPECT_EQ(four.outcome.steps, 20);
  EXPECT_LE(difference(four, one), 1e-9);
  EXPECT_LE(difference(mixed, one), 1e-9);
  EXPECT_NEAR(four.outcome.validation->loss, one.outcome.validation->loss, 1e-9);
  EXPECT_EQ(four.outcome.validation->scores.mean_iou, one.outcome.validation->scores.mean_iou);
}

TEST_F(Training, ResumesOnAnotherGrid) {
  const Trained whole = train(config("whole", 20), {1, {2, 2}, {}});
  TrainConfig part = config("parts", 20);
  part.checkpoint_interval = 7;
  // The schedule's length stays that of the whole run: the first part is interrupted, not shorter.
  stop_requested = true;
  EXPECT_EQ(train(part, {1, {1, 2}, {}}).outcome.end, TrainEnd::kInterrupted);
  stop_requested = false;
  const Trained resumed = train(part, {1, {3, 1}, {}});
  EXPECT_EQ(resumed.outcome.steps, 20);
  EXPECT_LE(difference(resumed, whole), 1e-9);
}

TEST_F(Training, ResumesWithTheSameBitsOnTheSameGrid) {
  const Plan plan{1, {2, 1}, {}};
  const Trained whole = train(config("whole", 12), plan);
  TrainConfig part = config("parts", 12);
  for (int stops = 0; stops < 3; ++stops) {
    stop_requested = true;
    train(part, plan);
    stop_requested = false;
  }
  EXPECT_EQ(difference(train(part, plan), whole), 0);
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
  EXPECT_LE(
      difference(train(small, {1, {2, 1}, {}}, net(2)), train(large, {1, {1, 2}, {}}, net(4))),
      1e-9);
}

TEST_F(Training, StartedAgainAfterAnEarlyStopDoesNothing) {
  TrainConfig config = this->config("early", 100);
  config.patience = 1;
  config.learning_rate = 0;  // nothing improves
  const Trained first = train(config, {1, {2, 1}, {}});
  EXPECT_EQ(first.outcome.end, TrainEnd::kEarlyStopped);
  EXPECT_LT(first.outcome.steps, 100);
  const Trained again = train(config, {1, {2, 1}, {}});
  EXPECT_EQ(again.outcome.end, TrainEnd::kEarlyStopped);
  EXPECT_EQ(again.outcome.steps, first.outcome.steps);
}

TEST_F(Training, AdamwAgreesToo) {
  TrainConfig adamw = config("adamw_one", 8);
  adamw.optimiser = "adamw";
  adamw.learning_rate = 1e-3;
  const Trained one = train(adamw, {});
  adamw.folder += "_four";
  EXPECT_LE(difference(train(adamw, {1, {2, 2}, {}}), one), 1e-8);
}

}  // namespace
}  // namespace tessera
