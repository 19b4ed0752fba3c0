// An optimiser's state leaves and comes back without a changed bit, or is refused whole.

#include <gtest/gtest.h>

#include "tessera/optim/averaged.h"
#include "tessera/optim/optimiser.h"
#include "tests/unit/refusal.h"
#include "tests/unit/train/small_problem.h"

namespace tessera::optimiser_state_test {
namespace {

using Make = std::unique_ptr<Optimiser> (*)();
std::unique_ptr<Optimiser> make_sgd() { return sgd({.weight_decay = 0.01, .nesterov = true}); }
std::unique_ptr<Optimiser> make_adamw() { return adamw({}); }
std::unique_ptr<Optimiser> make_averaged() { return averaged(adam({}), 0.9); }
std::unique_ptr<Optimiser> make_average_alone() { return averaged(sgd({.momentum = 0}), 0.9); }

void take_steps(Optimiser& optimiser, const Graph& graph, std::vector<at::Tensor>& parameters,
                int first, int last) {
  for (int step = first; step < last; ++step)
    optimiser.step(parameters, small_gradients(graph, parameters, step));
}

/// As a file keeps it: nothing shared with the optimiser.
NamedTensors cloned(const NamedTensors& state) {
  NamedTensors copy;
  for (const auto& [name, tensor] : state) copy.emplace_back(name, tensor.clone());
  return copy;
}

std::vector<std::string> names(const NamedTensors& state) {
  std::vector<std::string> result;
  for (const auto& [name, tensor] : state) result.push_back(name);
  return result;
}

struct Trained {
  Graph graph = small_graph();
  std::vector<at::Tensor> parameters = small_parameters(graph, at::kFloat);
  std::unique_ptr<Optimiser> optimiser;
  Trained(Make make, int steps) : optimiser(make()) {
    take_steps(*optimiser, graph, parameters, 0, steps);
  }
};

class ResumedOptimiser : public testing::TestWithParam<Make> {};
INSTANTIATE_TEST_SUITE_P(All, ResumedOptimiser,
                         testing::Values(&make_sgd, &make_adamw, &make_averaged,
                                         &make_average_alone));

TEST_P(ResumedOptimiser, ContinuesWithTheSameBits) {
  Trained whole(GetParam(), 9);
  Trained half(GetParam(), 4);
  std::vector<at::Tensor> parameters;
  for (const at::Tensor& parameter : half.parameters) parameters.push_back(parameter.clone());
  const NamedTensors saved = cloned(half.optimiser->state(half.graph));
  take_steps(*half.optimiser, half.graph, half.parameters, 4, 6);  // must not reach what was saved

  const std::unique_ptr<Optimiser> resumed = GetParam()();
  resumed->load_state(half.graph, parameters, saved);
  take_steps(*resumed, half.graph, parameters, 4, 9);
  for (size_t id = 0; id < parameters.size(); ++id)
    EXPECT_TRUE(parameters[id].equal(whole.parameters[id])) << "parameter " << id;
  const NamedTensors one = resumed->state(half.graph), other = whole.optimiser->state(whole.graph);
  ASSERT_EQ(names(one), names(other));
  for (size_t i = 0; i < one.size(); ++i)
    EXPECT_TRUE(one[i].second.equal(other[i].second)) << one[i].first;
}

TEST_P(ResumedOptimiser, TakesCopies) {
  Trained trained(GetParam(), 3);
  const NamedTensors saved = cloned(trained.optimiser->state(trained.graph));
  const NamedTensors untouched = cloned(saved);
  trained.optimiser->load_state(trained.graph, trained.parameters, saved);
  take_steps(*trained.optimiser, trained.graph, trained.parameters, 3, 5);
  for (size_t i = 0; i < saved.size(); ++i)
    EXPECT_TRUE(saved[i].second.equal(untouched[i].second)) << saved[i].first;
}

TEST_P(ResumedOptimiser, AnEmptyStateIsAFreshStart) {
  Trained fresh(GetParam(), 0);
  EXPECT_TRUE(fresh.optimiser->state(fresh.graph).empty());
  Trained used(GetParam(), 5);
  used.optimiser->load_state(used.graph, used.parameters, {});
  EXPECT_TRUE(used.optimiser->state(used.graph).empty());
}

TEST(OptimiserState, NamesAreTheParametersWithAPrefix) {
  EXPECT_EQ(names(Trained(&make_sgd, 1).optimiser->state(small_graph())),
            (std::vector<std::string>{"momentum.conv1.weight", "momentum.conv1.bias"}));
  const NamedTensors state = Trained(&make_adamw, 3).optimiser->state(small_graph());
  EXPECT_EQ(names(state),
            (std::vector<std::string>{"exp_avg.conv1.weight", "exp_avg_sq.conv1.weight",
                                      "step.conv1.weight", "exp_avg.conv1.bias",
                                      "exp_avg_sq.conv1.bias", "step.conv1.bias"}));
  EXPECT_EQ(state[2].second.scalar_type(), at::kDouble);
  EXPECT_EQ(state[2].second.numel(), 1);
  EXPECT_EQ(state[2].second.item<double>(), 3);
}

/// What a rank of a pipeline does: it steps, saves and loads the parameters of its stage alone.
TEST_P(ResumedOptimiser, OfSomeParametersTakesTheirPartOfTheWholeState) {
  Trained whole(GetParam(), 5);
  const NamedTensors saved = cloned(whole.optimiser->state(whole.graph));
  std::vector<at::Tensor> held = whole.parameters;
  held[0] = at::Tensor();  // conv1.weight is another's
  const std::unique_ptr<Optimiser> resumed = GetParam()();
  resumed->load_state(whole.graph, held, saved);
  NamedTensors expected;
  for (const auto& [name, tensor] : saved)
    if (name.ends_with("conv1.bias")) expected.emplace_back(name, tensor);
  const NamedTensors own = resumed->state(whole.graph);
  ASSERT_EQ(names(own), names(expected));
  for (size_t i = 0; i < own.size(); ++i)
    EXPECT_TRUE(own[i].second.equal(expected[i].second)) << own[i].first;
}

TEST_P(ResumedOptimiser, LayoutSaysWhatTheStateIs) {
  const Trained trained(GetParam(), 1);
  const NamedTensors state = trained.optimiser->state(trained.graph);
  const std::vector<StateTensor> layout = GetParam()()->state_layout(trained.graph, at::kFloat);
  ASSERT_EQ(layout.size(), state.size());
  for (size_t i = 0; i < layout.size(); ++i) {
    EXPECT_EQ(layout[i].name, state[i].first);
    EXPECT_EQ(layout[i].shape, state[i].second.sizes().vec());
    EXPECT_EQ(layout[i].type, state[i].second.scalar_type());
    EXPECT_TRUE(layout[i].name.ends_with(trained.graph.parameters()[layout[i].parameter].name));
  }
}

/// Loads `state` into an optimiser that has its own, and wants the message and no change.
void expect_refused_whole(Make make, const NamedTensors& state, const std::string& part) {
  Trained trained(make, 2);
  const NamedTensors before = cloned(trained.optimiser->state(trained.graph));
  expect_refusal([&] { trained.optimiser->load_state(trained.graph, trained.parameters, state); },
                 part);
  const NamedTensors after = trained.optimiser->state(trained.graph);
  ASSERT_EQ(names(after), names(before));
  for (size_t i = 0; i < after.size(); ++i)
    EXPECT_TRUE(after[i].second.equal(before[i].second)) << after[i].first;
}

TEST(OptimiserState, RefusesAStateThatDoesNotFit) {
  const NamedTensors momentum = cloned(Trained(&make_sgd, 1).optimiser->state(small_graph()));
  const NamedTensors moments = cloned(Trained(&make_adamw, 1).optimiser->state(small_graph()));
  expect_refused_whole(&make_adamw, momentum, "[adamw] the state has no exp_avg.conv1.weight");
  expect_refused_whole(&make_sgd, moments, "[sgd] the state has no momentum.conv1.weight");

  NamedTensors changed = momentum;
  changed.pop_back();
  expect_refused_whole(&make_sgd, changed, "has no momentum.conv1.bias");
  changed = momentum;
  changed.emplace_back("momentum.conv9.bias", at::zeros({4}));
  expect_refused_whole(&make_sgd, changed, "momentum.conv9.bias, which this optimiser and model");
  changed = momentum;
  changed.push_back(momentum[0]);
  expect_refused_whole(&make_sgd, changed, "momentum.conv1.weight twice");
  changed = momentum;
  changed[1].second = at::zeros({5});
  expect_refused_whole(&make_sgd, changed,
                       "momentum.conv1.bias is Float of 5, this run needs Float of 4");
  changed = momentum;
  changed[1].second = changed[1].second.to(at::kDouble);
  expect_refused_whole(&make_sgd, changed, "is Double of 4, this run needs Float of 4");
  changed = moments;
  changed[2].second = at::full({1}, 1.5, at::kDouble);
  expect_refused_whole(&make_adamw, changed, "step.conv1.weight is 1.5");
}

TEST(OptimiserState, SgdWithoutMomentumHasNone) {
  const Graph graph = small_graph();
  const NamedTensors momentum = cloned(Trained(&make_sgd, 1).optimiser->state(graph));
  const std::unique_ptr<Optimiser> plain = sgd({.momentum = 0});
  expect_refusal([&] { plain->load_state(graph, small_parameters(graph, at::kFloat), momentum); },
                 "which this optimiser and model do not have (2 such tensors)");
}

}  // namespace
}  // namespace tessera::optimiser_state_test
