// Training by multigrid over layers: the same weights on any slices, statistics that only the last
// sweep updates, validation and serial checks that are not approximate.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/lower/multigrid.h"
#include "tessera/ops/chain/chain_arithmetic.h"
#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/loss/cross_entropy.h"
#include "tessera/ops/loss/loss_target.h"
#include "tessera/ops/norm/batch_norm.h"
#include "tessera/ops/pointwise/relu.h"
#include "tests/ranks/train/training.h"

namespace tessera::train_multigrid_test {
namespace {

Graph chain(int64_t batch) {
  Graph graph;
  ValueId x = graph.add_input("image", ValueType::image({batch, 1, 16, 16}));
  x = convolution(graph, x, "open", {.out_channels = 3, .kernel = {3}, .padding = {1}});
  for (int i = 0; i < 8; ++i) {
    const std::string name = fmt::format("block{}", i);
    ValueId y = convolution(graph, x, name + ".conv",
                            {.out_channels = 3, .kernel = {3}, .padding = {1}, .bias = false});
    y = relu(graph, batch_norm(graph, y, name + ".norm"), name + ".relu");
    x = chain_step(graph, x, y, name + ".add", 0.25);
  }
  x = convolution(graph, x, "close", {.out_channels = 3, .kernel = {1}});
  graph.mark_output(x);
  cross_entropy(graph, x, add_target(graph, x, "target"), "loss");
  return graph;
}

Plan on_slices(const Graph& graph, const Multigrid& multigrid, int slices,
               const std::vector<int64_t>& grid = {}) {
  Plan plan;
  plan.multigrid = multigrid;
  if (slices == 1) {
    plan.space = grid;
    return plan;
  }
  plan.stages.assign(slices, grid);
  plan.stage_of = assign_layers(graph, multigrid, slices);
  return plan;
}

class TrainMultigrid : public Training {
 protected:
  /// Of the last line of metrics.csv that has them: how far the serial step was.
  SerialDifference last_check(const Trained& run) const {
    std::ifstream metrics(run.outcome.folder + "/metrics.csv");
    std::string line, last;
    while (std::getline(metrics, line))
      if (!line.empty() && line.back() != ',') last = line;
    const size_t gradient = last.rfind(','), loss = last.rfind(',', gradient - 1);
    return {std::stod(last.substr(loss + 1)), std::stod(last.substr(gradient + 1))};
  }

  /// Of every line of metrics.csv.
  std::vector<double> residuals(const Trained& run,
                                const std::string& name = "multigrid_residual") const {
    std::ifstream metrics(run.outcome.folder + "/metrics.csv");
    std::vector<double> found;
    std::string line;
    std::getline(metrics, line);
    const std::vector<std::string> names = split_text(line, ',');
    const auto column = std::ranges::find(names, name) - names.begin();
    while (std::getline(metrics, line)) found.push_back(std::stod(split_text(line, ',')[column]));
    return found;
  }

  const Multigrid approximate_{.coarsening = 2, .forward = 1, .backward = 1, .relaxations = 0};
};

TEST_F(TrainMultigrid, GivesTheWeightsOfOneRankOnAnySlices) {
  const Graph graph = chain(4);
  const Trained one = train(config("one", 8), on_slices(graph, approximate_, 1), graph);
  for (const Plan& plan :
       {on_slices(graph, approximate_, 2), on_slices(graph, approximate_, 4),
        on_slices(graph, approximate_, 2, {2, 1}), on_slices(graph, approximate_, 1, {1, 2})}) {
    SCOPED_TRACE(to_string(plan));
    const Trained run = train(
        config(fmt::format("run{}", plan.num_ranks()) + to_string(plan.grid(0)), 8), plan, graph);
    EXPECT_LE(difference(run, one), 1e-9);
    EXPECT_NEAR(run.outcome.validation->loss, one.outcome.validation->loss, 1e-9);
  }
  const Trained serial = train(config("serial", 8), {}, graph);
  EXPECT_GT(difference(serial, one), 1e-6);  // or there is nothing to test
}

TEST_F(TrainMultigrid, IsSerialTrainingAfterEnoughIterations) {
  const Graph graph = chain(4);
  Multigrid exact = approximate_;
  exact.forward = exact.backward = exact_iterations(exact, 8);
  const Trained solved = train(config("solved", 8), on_slices(graph, exact, 2), graph);
  const Trained serial = train(config("serial", 8), on_slices(graph, {.levels = 1}, 1), graph);
  EXPECT_EQ(difference(solved, serial), 0);
  EXPECT_EQ(solved.outcome.losses, serial.outcome.losses);
  EXPECT_EQ(solved.outcome.validation->loss, serial.outcome.validation->loss);
}

TEST_F(TrainMultigrid, SaysHowFarASerialStepIs) {
  const Graph graph = chain(4);
  double before = 1;
  for (int64_t iterations : {1, 2, 4}) {
    Multigrid multigrid = approximate_;
    multigrid.forward = multigrid.backward = iterations;
    TrainConfig checked = config(fmt::format("checked{}", iterations), 3);
    checked.check_serial = 1;
    const SerialDifference found =
        last_check(train(checked, on_slices(graph, multigrid, 2), graph));
    EXPECT_LT(found.gradient, before) << iterations;
    EXPECT_GE(found.gradient, 0);
    before = found.gradient;
  }
  EXPECT_LE(before, 1e-12);  // four are enough for eight blocks
}

/// The check changes nothing: neither weights nor running statistics.
TEST_F(TrainMultigrid, IsNotChangedByChecks) {
  const Graph graph = chain(4);
  const Plan plan = on_slices(graph, approximate_, 2);
  TrainConfig checked = config("checked", 6);
  checked.check_serial = 2;
  EXPECT_EQ(difference(train(checked, plan, graph), train(config("unchecked", 6), plan, graph)), 0);
}

/// V-cycles are added until the error is within the limit, and a resumed run knows how many.
TEST_F(TrainMultigrid, AddsCyclesWhereTheErrorIsTooLarge) {
  const Graph graph = chain(4);
  const Plan plan = on_slices(graph, approximate_, 2);
  const auto growing = [&](const std::string& run) {
    TrainConfig each = config(run, 6);
    each.check_serial = 1;
    each.multigrid_error = 1e-9;
    return each;
  };
  const Trained whole = train(growing("whole"), plan, graph);
  EXPECT_LE(last_check(whole).gradient, 1e-9);
  const TrainConfig part = growing("parts");
  for (int stops = 0; stops < 3; ++stops) train_one_step(part, plan, graph);
  const Trained resumed = train(part, plan, graph);
  EXPECT_EQ(difference(resumed, whole), 0);
  EXPECT_EQ(resumed.outcome.losses.back(), whole.outcome.losses.back());
}

/// The same for what a step's solve leaves, which is measured in every step.
TEST_F(TrainMultigrid, AddsCyclesWhereTheResidualIsTooLarge) {
  const Graph graph = chain(4);
  const Plan plan = on_slices(graph, approximate_, 2);
  const auto growing = [&](const std::string& run, double limit) {
    TrainConfig each = config(run, 6);
    each.multigrid_residual = limit;
    each.log_interval = 1;
    return each;
  };
  const Trained whole = train(growing("whole", 1e-9), plan, graph);
  const auto found = residuals(whole);
  ASSERT_EQ(found.size(), 6u);
  EXPECT_GT(found.front(), 1e-9);
  EXPECT_LE(found.back(), 1e-9);
  const TrainConfig part = growing("parts", 1e-9);
  for (int stops = 0; stops < 3; ++stops) train_one_step(part, plan, graph);
  const Trained resumed = train(part, plan, graph);
  EXPECT_EQ(difference(resumed, whole), 0);
  EXPECT_EQ(resumed.outcome.losses.back(), whole.outcome.losses.back());
  const Trained loose = train(growing("loose", 1), plan, graph);
  EXPECT_EQ(difference(loose, train(config("fixed", 6), plan, graph)), 0);
}

/// A residual of the gradients counts as one of the states.
TEST_F(TrainMultigrid, AddsCyclesWhereTheGradientsDoNotFit) {
  const Graph graph = chain(4);
  Multigrid multigrid = approximate_;
  multigrid.forward = exact_iterations(multigrid, 8);
  multigrid.measure_gradients = true;
  TrainConfig growing = config("growing", 6);
  growing.multigrid_residual = 1e-9;
  growing.log_interval = 1;
  const Trained run = train(growing, on_slices(graph, multigrid, 2), graph);
  for (double residual : residuals(run)) EXPECT_EQ(residual, 0);
  const auto of_gradients = residuals(run, "multigrid_gradient_residual");
  ASSERT_EQ(of_gradients.size(), 6u);
  EXPECT_GT(of_gradients.front(), 1e-9);
  EXPECT_LE(of_gradients.back(), 1e-9);
}

TEST_F(TrainMultigrid, ResumesWithTheSameBits) {
  const Graph graph = chain(4);
  const Plan plan = on_slices(graph, approximate_, 2);
  const Trained whole = train(config("whole", 4), plan, graph);
  const TrainConfig part = config("parts", 4);
  for (int stops = 0; stops < 2; ++stops) train_one_step(part, plan, graph);
  const Trained resumed = train(part, plan, graph);
  EXPECT_EQ(difference(resumed, whole), 0);
  EXPECT_EQ(difference_of_checkpoints(resumed, whole), 0);
}

TEST_F(TrainMultigrid, RefusesChecksOfNothing) {
  const Graph graph = chain(4);
  TrainConfig checked = config("checked", 1);
  checked.check_serial = 1;
  EXPECT_THROW(train(checked, {}, graph), InvalidInput);
  TrainConfig unchecked = config("unchecked", 1);
  unchecked.multigrid_error = 0.1;
  EXPECT_THROW(train(unchecked, on_slices(graph, approximate_, 2), graph), InvalidInput);
  TrainConfig unsolved = config("unsolved", 1);
  unsolved.multigrid_residual = 0.1;
  EXPECT_THROW(train(unsolved, {}, graph), InvalidInput);
}

}  // namespace
}  // namespace tessera::train_multigrid_test
