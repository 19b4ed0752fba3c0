// What a rank holds of the parameters, and gradients as views of the buckets that are reduced.

#include "tessera/runtime/parameter_store.h"

#include <gtest/gtest.h>

#include "tessera/lower/lower.h"
#include "tessera/simulate/simulator.h"
#include "tests/unit/graph/two_layers.h"

namespace tessera::parameter_store_test {
namespace {

/// conv1 on the first stage, all else on the second.
Lowered on_two_stages(const LowerOptions& options = {}) {
  const Graph graph = two_layers();
  Plan plan;
  plan.stages = {{}, {}};
  for (const Node& node : graph.nodes()) plan.stage_of[node.name] = node.name == "conv1" ? 0 : 1;
  return lower(graph, plan, options);
}

std::vector<std::string> names_of_defined(const Graph& graph,
                                          const std::vector<at::Tensor>& tensors) {
  std::vector<std::string> names;
  for (size_t id = 0; id < tensors.size(); ++id)
    if (tensors[id].defined()) names.push_back(graph.parameters()[id].name);
  return names;
}

using Names = std::vector<std::string>;

TEST(ParameterStore, HoldsWhatItsRankUses) {
  const Lowered lowered = on_two_stages();
  const ParameterStore first(lowered.graph, lowered.programs[0].parameters, 1, at::kDouble);
  const ParameterStore second(lowered.graph, lowered.programs[1].parameters, 1, at::kDouble);
  EXPECT_EQ(names_of_defined(lowered.graph, first.values()), (Names{"conv1.weight", "conv1.bias"}));
  EXPECT_EQ(names_of_defined(lowered.graph, second.values()),
            (Names{"norm1.weight", "norm1.bias", "norm1.running_mean", "norm1.running_var",
                   "conv2.weight", "conv2.bias"}));
}

TEST(ParameterStore, StartsWithTheSameBitsWhoeverHoldsIt) {
  const Graph graph = two_layers();
  const ParameterId last = static_cast<ParameterId>(graph.parameters().size()) - 1;
  for (const at::ScalarType real : {at::kFloat, at::kDouble}) {
    const ParameterStore all(graph, {0, 1, last}, /*seed=*/3, real), one(graph, {last}, 3, real);
    EXPECT_EQ(one.values()[last].scalar_type(), real);
    EXPECT_TRUE(one.values()[last].equal(all.values()[last]));
    EXPECT_TRUE(one.values()[last].equal(initial_value(graph.parameters()[last], 3).to(real)));
  }
}

TEST(ParameterStore, DoesNotWriteToGivenTensors) {
  Graph graph;
  const at::Tensor given = at::ones({3}, at::kDouble);
  graph.add_parameter({.name = "w", .shape = {3}, .initial = {Initial::Kind::kGiven, 0, given}});
  ParameterStore store(graph, {0}, 1, at::kDouble);
  store.values()[0].zero_();
  EXPECT_TRUE(given.equal(at::ones({3}, at::kDouble)));
}

TEST(ParameterStore, GradientsAreViewsOfWhatIsShown) {
  const Graph graph = two_layers();
  ParameterStore store(graph, {0, 1, 6, 7}, 1, at::kDouble);
  const int64_t num_bias = store.values()[1].numel(), num_weight = store.values()[0].numel();
  const std::vector<Bucket> buckets{{0, {0}, {7}, {0}, {}}, {1, {0}, {1, 0}, {0, num_bias}, {}}};
  const auto show = [&] {
    std::vector<at::Tensor> tensors{at::zeros({store.values()[7].numel()}, at::kDouble),
                                    at::arange(num_bias + num_weight, at::kDouble)};
    store.show_gradients(buckets, tensors);
    return tensors;
  };
  const std::vector<at::Tensor> tensors = show();
  EXPECT_TRUE(store.gradients()[1].equal(at::arange(num_bias, at::kDouble)));
  EXPECT_TRUE(store.gradients()[0].equal(
      at::arange(num_bias, num_bias + num_weight, at::kDouble).view(graph.parameters()[0].shape)));
  store.gradients()[0].zero_();
  EXPECT_EQ(tensors[1][num_bias].item<double>(), 0);
  EXPECT_FALSE(store.gradients()[6].defined()) << "it lies in no bucket";
  show();
  EXPECT_EQ(store.gradients()[0].view(-1)[0].item<double>(), static_cast<double>(num_bias));
}

TEST(ParameterStore, KeepsTheGradientsToWhichStepsAdd) {
  const Lowered lowered = lower(two_layers(), {}, {.zero_gradients = false, .bucket_elements = 20});
  const Program& program = lowered.programs[0];
  ASSERT_GT(program.buckets.size(), 1u);
  ParameterStore store(lowered.graph, program.parameters, 1, at::kFloat);
  store.make_buckets(program);
  EXPECT_EQ(store.bucket(0).abs().sum().item<float>(), 0);
  store.bucket(0).fill_(7);
  store.make_buckets(program);
  EXPECT_EQ(store.bucket(0)[0].item<float>(), 7) << "a second program finds them";
}

TEST(ParameterStore, StateIsLaidOutLikeTheBuckets) {
  const Lowering lowering(two_layers(), {},
                          {.step = StepKind::kTrain,
                           .optimiser = {.copies = 2, .counters = true},
                           .bucket_elements = 20});
  const Program program = lowering.program(0);
  ParameterStore store(lowering.graph(), program.parameters, 1, at::kFloat);
  // A step that only adds to the gradients comes first: it has no state.
  store.make_buckets(Lowering(two_layers(), {}, {.bucket_elements = 20}).program(0));
  EXPECT_TRUE(store.states()[0].empty());
  store.make_buckets(program);
  for (size_t b = 0; b < program.buckets.size(); ++b) {
    const Bucket& bucket = program.buckets[b];
    const int index = static_cast<int>(b);
    store.state(index, 1).copy_(at::arange(store.state(index, 1).numel(), at::kFloat));
    store.counters(index).copy_(at::arange(store.counters(index).numel(), at::kDouble));
    for (size_t i = 0; i < bucket.parameters.size(); ++i) {
      const std::vector<at::Tensor>& state = store.states()[bucket.parameters[i]];
      ASSERT_EQ(state.size(), 3u);
      EXPECT_EQ(state[0].abs().sum().item<float>(), 0);
      EXPECT_EQ(state[1].sizes(), store.values()[bucket.parameters[i]].sizes());
      EXPECT_EQ(state[1].view(-1)[0].item<float>(), static_cast<float>(bucket.offsets[i]));
      EXPECT_EQ(state[2].item<double>(), static_cast<double>(i));
    }
  }
  EXPECT_EQ(store.bytes(), simulate(program, at::kFloat).parameter_bytes);
}

TEST(ParameterStore, CountsTheBytesThatAreForecast) {
  const int64_t elements = 3 * 2 * 3 * 3 + 3;  // of conv1
  for (const bool zero_gradients : {true, false}) {
    const Lowered lowered = on_two_stages({.zero_gradients = zero_gradients});
    for (const at::ScalarType real : {at::kFloat, at::kDouble})
      for (const Program& program : lowered.programs) {
        ParameterStore store(lowered.graph, program.parameters, 1, real);
        store.make_buckets(program);
        EXPECT_EQ(store.bytes(), simulate(program, real).parameter_bytes);
      }
    ParameterStore first(lowered.graph, lowered.programs[0].parameters, 1, at::kDouble);
    EXPECT_EQ(first.bytes(), elements * 8);
    first.make_buckets(lowered.programs[0]);
    EXPECT_EQ(first.bytes(), (zero_gradients ? 1 : 2) * elements * 8);
  }
}

}  // namespace
}  // namespace tessera::parameter_store_test
