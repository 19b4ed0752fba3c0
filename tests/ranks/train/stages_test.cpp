// Training on pipeline stages is training on one rank: weights, the optimiser's state, running
// statistics, validation, and all that is written or read on the way, though no rank holds all
// parameters.

#include <fmt/format.h>

#include <cmath>

#include "tessera/base/error.h"
#include "tessera/checkpoint/safetensors.h"
#include "tessera/lower/micro_batch_norm.h"
#include "tessera/zoo/zoo.h"
#include "tests/ranks/train/training.h"

namespace tessera::stages_test {
namespace {

using Grids = std::vector<std::vector<int64_t>>;

/// Batch norm, so that there are running statistics.
Graph network_with_norm(int64_t batch) {
  return build_model("unet2d:base=2,depth=2,classes=3", {batch, 1, 16, 16});
}

Plan three_stages(const Graph& graph) {
  return on_stages(graph, Grids(3), 4, ScheduleKind::kOneForwardOneBackward);
}

Plan stages_grids_and_replicas(const Graph& graph) {
  Plan plan = on_stages(graph, {{1, 2}, {1, 2}}, 2, ScheduleKind::kOneForwardOneBackward);
  plan.data = 2;
  return plan;
}

class Stages : public Training {
 protected:
  TrainConfig config(const std::string& run, int64_t steps) const {
    TrainConfig config = Training::config(run, steps);
    config.clip_norm = 0.5;
    return config;
  }

  static void expect_same(const Trained& run, const Trained& expected) {
    EXPECT_EQ(run.outcome.steps, expected.outcome.steps);
    EXPECT_LE(difference(run, expected), 1e-9);
    EXPECT_LE(difference_of_checkpoints(run, expected), 1e-9);
    EXPECT_NEAR(run.outcome.loss, expected.outcome.loss, 1e-9);
    ASSERT_TRUE(run.outcome.validation && expected.outcome.validation);
    EXPECT_NEAR(run.outcome.validation->loss, expected.outcome.validation->loss, 1e-9);
    EXPECT_EQ(run.outcome.validation->scores.iou, expected.outcome.validation->scores.iou);
  }
};

TEST_F(Stages, TrainAsOneRankDoes) {
  const Graph graph = normalised_network(4);
  const std::vector<Plan> plans{
      three_stages(graph),
      stages_grids_and_replicas(graph),
      on_stages(graph, Grids(2), 2, ScheduleKind::kGems),
      on_stages(graph, {{2, 1}, {}, {1, 2}}, 4, ScheduleKind::kZeroBubble),
      on_stages(graph, Grids(2), 4, ScheduleKind::kInterleaved, 2),
  };
  const Trained one = train(config("one", 12), {}, graph);
  for (size_t i = 0; i < plans.size(); ++i) {
    SCOPED_TRACE(to_string(plans[i]));
    expect_same(train(config(fmt::format("run{}", i), 12), plans[i], graph), one);
  }
  TrainConfig unclipped = config("unclipped", 12);
  unclipped.clip_norm = 0;
  EXPECT_GT(difference(train(unclipped, {}, graph), one), 1e-3) << "clipping has nothing to do";
}

/// A start on each placement, one step each, then the rest on one rank.
TEST_F(Stages, AreLeftAndEnteredByResuming) {
  const Graph graph = normalised_network(4);
  for (const char* optimiser : {"sgd", "adamw"}) {
    SCOPED_TRACE(optimiser);
    TrainConfig whole = config(fmt::format("{}_whole", optimiser), 7);
    whole.optimiser = optimiser;
    whole.learning_rate = 1e-3;
    TrainConfig parts = whole;
    parts.folder += "_parts";
    train_one_step(parts, on_stages(graph, Grids(4), 4, ScheduleKind::kGpipe), graph);
    train_one_step(parts, on_grid({2, 1}), graph);
    train_one_step(parts, stages_grids_and_replicas(graph), graph);
    train_one_step(parts, on_stages(graph, Grids(2), 2, ScheduleKind::kGems), graph);
    train_one_step(parts, three_stages(graph), graph);
    expect_same(train(parts, {}, graph), train(whole, {}, graph));
  }
}

TEST_F(Stages, ResumeWithTheSameBits) {
  const Graph graph = normalised_network(4);
  const Plan plan = three_stages(graph);
  const Trained whole = train(config("whole", 5), plan, graph);
  const TrainConfig part = config("parts", 5);
  for (int stops = 0; stops < 2; ++stops) train_one_step(part, plan, graph);
  const Trained resumed = train(part, plan, graph);
  EXPECT_EQ(difference(resumed, whole), 0);
  EXPECT_EQ(difference_of_checkpoints(resumed, whole), 0);
}

/// The statistics of a micro-batch make another network than those of the batch, but the same one
/// on every placement.
TEST_F(Stages, NormaliseMicroBatchesAsOneStageDoes) {
  const Graph graph = with_micro_batch_norm(network_with_norm(4), 2);
  Plan one_stage;
  one_stage.micro_batches = 2;
  const auto whole_batches = [&](const std::string& run) {
    TrainConfig each = config(run, 6);
    each.drop_last = true;  // one sample has no statistics for two micro-batches
    return each;
  };
  const Trained one = train(whole_batches("one"), one_stage, graph);
  const std::vector<Plan> plans{
      on_stages(graph, Grids(2), 2, ScheduleKind::kOneForwardOneBackward),
      on_stages(graph, {{1, 2}, {2, 1}}, 2, ScheduleKind::kGpipe),
      on_stages(graph, Grids(2), 2, ScheduleKind::kGems),
  };
  for (size_t i = 0; i < plans.size(); ++i) {
    SCOPED_TRACE(to_string(plans[i]));
    expect_same(train(whole_batches(fmt::format("run{}", i)), plans[i], graph), one);
  }
}

TEST_F(Stages, ReadAndWriteWholeFiles) {
  const Graph graph = normalised_network(4);
  TrainConfig first = config("first", 1);
  first.save_weights = file("start.safetensors");
  train(first, stages_grids_and_replicas(graph), graph);
  const auto from_those = [&](const std::string& run, const Plan& plan) {
    TrainConfig next = config(run, 2);
    next.seed = 8;  // so that weights which are not loaded differ
    next.init_weights = first.save_weights;
    next.dump_gradients = file(fmt::format("{}_gradients.safetensors", run));
    return train(next, plan, graph);
  };
  expect_same(from_those("stages", three_stages(graph)), from_those("one", {}));
  const SafetensorsFile one(file("one_gradients.safetensors"));
  const SafetensorsFile stages(file("stages_gradients.safetensors"));
  ASSERT_EQ(stages.entries().size(), one.entries().size());
  for (const TensorEntry& entry : one.entries()) {
    const at::Tensor expected = one.tensor(entry.name);
    EXPECT_TRUE(stages.tensor(entry.name).allclose(expected, 1e-9, 1e-12)) << entry.name;
  }
}

/// A weight of the first stage is NaN, and so is every step: all ranks leave them out, and running
/// statistics go back to what they were, on every stage.
TEST_F(Stages, LeaveBadStepsOutTogether) {
  const Graph graph = with_micro_batch_norm(network_with_norm(4), 2);
  TrainConfig config = this->config("bad", 3);
  config.on_nan = "skip";
  config.drop_last = true;
  const Plan plan = on_stages(graph, {{}, {1, 2}}, 2, ScheduleKind::kOneForwardOneBackward);
  const Trained run = train(config, plan, graph, [](const Trainer& trainer, int) {
    const at::Tensor& weight = trainer.parameters().values()[0];
    if (weight.defined()) weight.fill_(NAN);
  });
  EXPECT_EQ(run.outcome.steps, 3);
  EXPECT_TRUE(std::isnan(run.outcome.loss));
  for (size_t id = 1; id < run.parameters.size(); ++id) {
    const Parameter& parameter = graph.parameters()[id];
    EXPECT_TRUE(run.parameters[id].equal(initial_value(parameter, config.seed))) << parameter.name;
  }
}

TEST_F(Stages, NameTheRankAndParameterThatDrifted) {
  const Graph graph = normalised_network(4);
  Plan plan = on_stages(graph, Grids(2), 1, ScheduleKind::kOneForwardOneBackward);
  plan.data = 2;  // ranks 1 and 3 are the second stage
  std::string drifted, complaint;
  const auto disturb = [&](const Trainer& trainer, int rank) {
    if (rank != 3) return;
    const std::vector<at::Tensor>& values = trainer.parameters().values();
    for (size_t id = 0; id < values.size(); ++id)
      if (values[id].defined() && drifted.empty()) {
        drifted = graph.parameters()[id].name;
        values[id].view(-1)[0].add_(1e-3);
      }
  };
  try {
    train(config("drift", 1), plan, graph, disturb);
  } catch (const InternalError& error) {
    complaint = error.what();
  }
  ASSERT_FALSE(drifted.empty());
  EXPECT_NE(complaint.find(fmt::format("{} of rank 3 differs from rank 1's", drifted)),
            std::string::npos)
      << complaint;
}

}  // namespace
}  // namespace tessera::stages_test
