// What a run can be asked for besides its steps: averages of the weights, a rate that falls where
// nothing improves, frozen weights. All are the same on every placement and after a resume.

#include <fnmatch.h>

#include "tessera/checkpoint/checkpoint.h"
#include "tessera/checkpoint/weights.h"
#include "tessera/graph/transform.h"
#include "tests/ranks/train/reference_run.h"
#include "tests/ranks/train/training.h"

namespace tessera::options_test {
namespace {

TrainConfig with_average(TrainConfig config) {
  config.ema = 0.8;
  config.save_weights = config.folder + ".safetensors";
  return config;
}

std::vector<at::Tensor> saved(const TrainConfig& config, const Graph& graph) {
  std::vector<at::Tensor> values;
  for (const Parameter& parameter : graph.parameters())
    values.push_back(at::zeros(parameter.shape, at::kDouble));
  load_weights(config.save_weights, graph, values);
  return values;
}

TEST_F(Training, SavesTheAverageOfTheWeights) {
  TrainConfig each = with_average(config("average", 6));
  each.clip_norm = 0;
  each.schedule = "constant";
  const Graph graph = normalised_network(2);
  // The average, by hand, of what the run has after each of its steps.
  std::vector<at::Tensor> average;
  TrainConfig plain = each;
  plain.ema = 0;
  for (int64_t steps = 1; steps <= 6; ++steps) {
    plain.steps = steps;
    const auto weights = train_by_reference(plain, 2, normalised_network);
    for (size_t id = 0; id < weights.size(); ++id)
      if (steps == 1)
        average.push_back(weights[id].clone());
      else
        average[id].mul_(0.8).add_(weights[id], 0.2);
  }
  for (const Plan& plan :
       {Plan{}, on_grid({2, 2}),
        on_stages(graph, {{2, 1}, {}}, 2, ScheduleKind::kOneForwardOneBackward)}) {
    SCOPED_TRACE(to_string(plan));
    each.folder += "x";
    const Trained run = train(each, plan, graph);
    EXPECT_LE(difference({{}, saved(each, graph)}, {{}, average}), 1e-10);
    EXPECT_GT(difference(run, {{}, average}), 1e-6) << "the weights themselves are not averages";
  }
}

TEST_F(Training, ResumesAveragesToTheBit) {
  const Graph graph = normalised_network(2);
  const Plan plan = on_grid({2, 1});
  const TrainConfig whole = with_average(config("whole", 8));
  const TrainConfig parts = with_average(config("parts", 8));
  const Trained uninterrupted = train(whole, plan, graph);
  for (int stops = 0; stops < 3; ++stops) train_one_step(parts, plan, graph);
  const Trained resumed = train(parts, plan, graph);
  EXPECT_EQ(difference(resumed, uninterrupted), 0);
  EXPECT_EQ(difference_of_checkpoints(resumed, uninterrupted), 0);
  EXPECT_EQ(difference({{}, saved(parts, graph)}, {{}, saved(whole, graph)}), 0);
  EXPECT_EQ(resumed.outcome.validation->loss, uninterrupted.outcome.validation->loss);
}

TEST_F(Training, ValidatesTheAverage) {
  const Graph graph = normalised_network(2);
  TrainConfig averaged = with_average(config("averaged", 8));
  const Trained run = train(averaged, on_grid({1, 2}), graph);
  TrainConfig plain = config("plain", 8);
  const Trained other = train(plain, on_grid({1, 2}), graph);
  EXPECT_EQ(difference(run, other), 0) << "averages must not change the run";
  EXPECT_NE(run.outcome.validation->loss, other.outcome.validation->loss);
  // A run that starts from the averages and does not move validates to the same number.
  TrainConfig still = config("still", 1);
  still.init_weights = averaged.save_weights;
  still.learning_rate = 0;
  EXPECT_NEAR(train(still, {}, graph).outcome.validation->loss, run.outcome.validation->loss,
              1e-12);
}

TEST_F(Training, LowersTheRateOnAPlateauAndResumesIt) {
  const Graph graph = normalised_network(2);
  TrainConfig whole = config("whole", 30);
  whole.schedule = "plateau";
  whole.learning_rate = 1e-5;  // nothing improves by a tenth of itself
  whole.plateau_patience = 1;
  whole.plateau_threshold = 0.1;
  whole.gamma = 0.5;
  const Plan plan = on_grid({2, 1});
  const Trained uninterrupted = train(whole, plan, graph);
  TrainConfig parts = whole;
  parts.folder += "_parts";
  parts.checkpoint_interval = 1;
  for (int stops = 0; stops < 12; ++stops) train_one_step(parts, plan, graph);
  const Trained resumed = train(parts, plan, graph);
  EXPECT_EQ(difference(resumed, uninterrupted), 0);
  const auto rate = [](const Trained& run) {
    const auto state = CheckpointStore(run.outcome.checkpoint, 1).load(run.outcome.checkpoint);
    return state.metadata.at("plateau_rate");
  };
  EXPECT_EQ(rate(resumed), rate(uninterrupted));
  // 9 samples in batches of 2: validations after steps 5, 10, ... 30. The first is the best; those
  // at 15 and at 25 are the second ones that are not better.
  EXPECT_EQ(std::stod(rate(uninterrupted)), 1e-5 * 0.5 * 0.5);
}

TEST_F(Training, LeavesFrozenWeightsAlone) {
  for (const char* pattern : {"enc1.*", "*.weight", "*.bias", "*.norm.*", "*.conv.weight"}) {
    SCOPED_TRACE(pattern);
    const auto chosen = [&](const Parameter& parameter) {
      return fnmatch(pattern, parameter.name.c_str(), 0) == 0;
    };
    const auto network = [&](int64_t batch) {
      return with_frozen(normalised_network(batch), chosen);
    };
    TrainConfig each =
        config(std::string("frozen_") + (pattern[0] == '*' ? pattern + 2 : pattern), 4);
    each.clip_norm = 0;
    each.schedule = "constant";
    each.optimiser = "adamw";  // it decays what it touches
    const auto expected = train_by_reference(each, 2, network);
    const Graph graph = network(2);
    for (const Plan& plan : {Plan{}, on_grid({2, 2})}) {
      SCOPED_TRACE(to_string(plan));
      each.folder += "x";
      const Trained run = train(each, plan, graph);
      EXPECT_LE(difference(run, {{}, expected}), 1e-9);
      const auto state = CheckpointStore(run.outcome.checkpoint, 1).load(run.outcome.checkpoint);
      for (size_t id = 0; id < graph.parameters().size(); ++id) {
        const Parameter& parameter = graph.parameters()[id];
        const bool stays = run.parameters[id].equal(initial_value(parameter, each.seed));
        EXPECT_EQ(stays, chosen(parameter)) << parameter.name;
        EXPECT_EQ(tensors_under(state, "optimiser.exp_avg.").contains(parameter.name),
                  !chosen(parameter))
            << parameter.name;
      }
    }
  }
}

}  // namespace
}  // namespace tessera::options_test
