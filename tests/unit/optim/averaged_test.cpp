// The moving average of the weights: AveragedModel's rule beside any optimiser, exchanged with the
// weights without a changed bit.

#include "tessera/optim/averaged.h"

#include <gtest/gtest.h>

#include "tests/unit/refusal.h"
#include "tests/unit/train/small_problem.h"

namespace tessera::averaged_test {
namespace {

constexpr double kDecay = 0.75;

struct Problem {
  Graph graph = small_graph();
  std::vector<at::Tensor> parameters = small_parameters(graph, at::kDouble);
  void step(Optimiser& optimiser, int step) {
    optimiser.step(parameters, small_gradients(graph, parameters, step));
  }
};

TEST(Averaged, IsTheAverageOfTheWeightsAfterEachStep) {
  Problem ours, plain;
  const auto optimiser = averaged(adam({}), kDecay), alone = adam({});
  EXPECT_EQ(optimiser->state_copies(), 3);
  EXPECT_TRUE(optimiser->counts_steps());
  std::vector<at::Tensor> expected(3);
  for (int step = 0; step < 6; ++step) {
    EXPECT_EQ(optimiser->average(0).defined(), step > 0);
    ours.step(*optimiser, step);
    plain.step(*alone, step);
    for (int id : {0, 2}) {
      EXPECT_TRUE(ours.parameters[id].equal(plain.parameters[id])) << "the step itself has changed";
      expected[id] = step == 0 ? plain.parameters[id].clone()
                               : expected[id] * kDecay + (1 - kDecay) * plain.parameters[id];
      EXPECT_LE((optimiser->average(id) - expected[id]).abs().max().item<double>(), 1e-15);
    }
    EXPECT_FALSE(optimiser->average(1).defined()) << "a buffer has no average";
  }
}

TEST(Averaged, IsExchangedWithTheWeightsAndBack) {
  Problem problem;
  const auto optimiser = averaged(sgd({.momentum = 0}), kDecay);
  for (int step = 0; step < 3; ++step) problem.step(*optimiser, step);
  const at::Tensor weight = problem.parameters[0].clone(), average = optimiser->average(0).clone();
  ASSERT_FALSE(weight.equal(average));
  {
    const WithAverages exchanged(*optimiser, problem.parameters);
    EXPECT_TRUE(problem.parameters[0].equal(average));
  }
  EXPECT_TRUE(problem.parameters[0].equal(weight));
  EXPECT_TRUE(optimiser->average(0).equal(average));
}

TEST(Averaged, LiesWhereTheStateIsKept) {
  Problem problem;
  const auto optimiser = averaged(adam({}), kDecay);
  std::vector<std::vector<at::Tensor>> places(3);
  for (int id : {0, 2}) {
    for (int copy = 0; copy < 3; ++copy)
      places[id].push_back(at::full_like(problem.parameters[id], 17));
    places[id].push_back(at::full({1}, 17, at::kDouble));
  }
  optimiser->keep_state_in(places);
  for (int step = 0; step < 2; ++step) problem.step(*optimiser, step);
  EXPECT_EQ(places[0][3].item<double>(), 2);
  EXPECT_TRUE(places[0][2].equal(optimiser->average(0)));
  EXPECT_EQ(places[0][2].data_ptr(), optimiser->average(0).data_ptr());
}

TEST(Averaged, RefusesAStateWithoutAverages) {
  Problem problem;
  const auto plain = sgd({});
  problem.step(*plain, 0);
  const NamedTensors state = plain->state(problem.graph);
  expect_refusal(
      [&] { averaged(sgd({}), kDecay)->load_state(problem.graph, problem.parameters, state); },
      "[ema] the state has no averages of the weights; resume without --ema");
  expect_refusal([] { averaged(sgd({}), 1); }, "[ema] decay 1 must be in [0, 1)");
}

}  // namespace
}  // namespace tessera::averaged_test
