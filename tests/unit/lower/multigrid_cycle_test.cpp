// Multigrid over layers as data: the cycle as papers draw it, and what it computes, tried on chains
// of numbers: serial to the bit where it promises that, nearer with each V-cycle before.

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tessera/lower/multigrid_cycle.h"
#include "tests/unit/refusal.h"

namespace tessera::multigrid_cycle_test {
namespace {

/// A chain u <- u + f_layer(u), of numbers.
struct Chain {
  explicit Chain(int num_layers, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    for (int i = 0; i < num_layers; ++i) {
      weight.push_back(normal(random));
      bias.push_back(normal(random));
    }
  }
  int size() const { return static_cast<int>(weight.size()); }
  double step(const Range& layers, double u) const {
    const int64_t i = layers.begin;
    const double scale = 0.3 * static_cast<double>(layers.size()) / size();
    return u + scale * std::tanh(weight[i] * u + bias[i]);
  }
  std::vector<double> weight, bias;
};

std::vector<double> starts_of(const Cycle& cycle, const Chain& chain, double given) {
  std::vector<double> values{given};
  for (size_t i = 1; i < cycle.ops.size(); ++i) {
    const CycleOp& op = cycle.ops[i];
    values.push_back(op.kind == CycleOp::Kind::kStep
                         ? chain.step(op.layers, values[op.from])
                         : values[op.from] + (values[op.now] - values[op.then]));
  }
  std::vector<double> starts;
  for (int start : cycle.starts) starts.push_back(values[start]);
  return starts;
}

/// The states at the same places, one layer after the other.
std::vector<double> serial_starts(const Cycle& cycle, const Chain& chain, double given,
                                  SweepOrder order) {
  std::vector<double> states{given};
  for (int64_t i = 0; i < chain.size(); ++i) {
    const int64_t layer = order == SweepOrder::kForward ? i : chain.size() - 1 - i;
    states.push_back(chain.step({layer, layer + 1}, states.back()));
  }
  std::vector<double> starts;
  for (const Range& interval : cycle.intervals)
    starts.push_back(
        states[order == SweepOrder::kForward ? interval.begin : chain.size() - interval.end]);
  return starts;
}

double error_of(const Multigrid& multigrid, int num_layers, int iterations, SweepOrder order) {
  const Chain chain(num_layers, 7);
  const Cycle cycle = make_cycle(multigrid, num_layers, iterations, order);
  const std::vector<double> found = starts_of(cycle, chain, 0.7);
  const std::vector<double> right = serial_starts(cycle, chain, 0.7, order);
  double error = 0;
  for (size_t i = 0; i < right.size(); ++i) error = std::max(error, std::abs(found[i] - right[i]));
  return error;
}

/// Calls body with many shapes of cycles.
template <class Body>
void for_each_multigrid(Body body) {
  for (int64_t levels : {1, 2, 3, 4})
    for (int64_t coarsening : {2, 3, 4})
      for (int64_t relaxations : {0, 1, 2})
        for (bool skip : {false, true})
          for (int num_layers : {1, 2, 5, 8, 12, 17, 32, 37})
            body(Multigrid{.levels = levels,
                           .coarsening = coarsening,
                           .relaxations = relaxations,
                           .skip = skip},
                 num_layers);
}

TEST(MultigridCycle, IsTheSerialRunAfterEnoughIterations) {
  for (SweepOrder order : {SweepOrder::kForward, SweepOrder::kBackward})
    for_each_multigrid([&](const Multigrid& multigrid, int num_layers) {
      const int enough =
          static_cast<int>(std::max<int64_t>(1, exact_iterations(multigrid, num_layers)));
      EXPECT_EQ(error_of(multigrid, num_layers, enough, order), 0)
          << to_string(multigrid) << " of " << num_layers << " layers";
    });
}

TEST(MultigridCycle, ListsNothingButTheChainAfterEnoughIterations) {
  for_each_multigrid([](const Multigrid& multigrid, int num_layers) {
    const int enough =
        static_cast<int>(std::max<int64_t>(1, exact_iterations(multigrid, num_layers)));
    const Cycle cycle = make_cycle(multigrid, num_layers, enough, SweepOrder::kForward);
    for (size_t i = 1; i < cycle.ops.size(); ++i) {
      EXPECT_EQ(cycle.ops[i].kind, CycleOp::Kind::kStep);
      EXPECT_EQ(cycle.ops[i].level, 0);
      EXPECT_EQ(cycle.ops[i].from, static_cast<int>(i) - 1);
    }
  });
}

TEST(MultigridCycle, NeedsAllOfThem) {
  for (int64_t relaxations : {0, 1}) {
    const Multigrid multigrid{.relaxations = relaxations};
    const int enough = static_cast<int>(exact_iterations(multigrid, 32));
    EXPECT_EQ(enough, relaxations == 0 ? 7 : 4);
    EXPECT_GT(error_of(multigrid, 32, enough - 1, SweepOrder::kForward), 0);
  }
}

TEST(MultigridCycle, ComesNearerWithEachIteration) {
  for (SweepOrder order : {SweepOrder::kForward, SweepOrder::kBackward})
    for (int64_t levels : {2, 3})
      for (int64_t relaxations : {0, 1}) {
        const Multigrid multigrid{.levels = levels, .coarsening = 4, .relaxations = relaxations};
        double before = 1;
        for (int iterations = 1; iterations <= 4; ++iterations) {
          const double error = error_of(multigrid, 128, iterations, order);
          EXPECT_LT(error, 0.5 * before) << to_string(multigrid) << ", " << iterations;
          before = error;
        }
      }
}

TEST(MultigridCycle, StartsFromTheCoarsestWalkWhereAsked) {
  const Multigrid multigrid{.levels = 3, .coarsening = 2, .relaxations = 0, .skip = true};
  const Cycle cycle = make_cycle(multigrid, 8, 1, SweepOrder::kForward);
  for (const CycleOp& op : cycle.ops) EXPECT_NE(op.kind, CycleOp::Kind::kCorrect);
  EXPECT_EQ(cycle.ops[1], (CycleOp{CycleOp::Kind::kStep, 2, {0, 4}, 0}));
}

TEST(MultigridCycle, CutsUnevenChainsAtIntervals) {
  const Cycle cycle = make_cycle({.coarsening = 4}, 10, 1, SweepOrder::kForward);
  EXPECT_EQ(cycle.intervals, (std::vector<Range>{{0, 4}, {4, 8}, {8, 10}}));
  EXPECT_EQ(layer_slices(cycle, 2), (std::vector<Range>{{0, 4}, {4, 10}}));
  EXPECT_EQ(make_cycle({.coarsening = 4}, 10, 1, SweepOrder::kBackward).intervals, cycle.intervals);
}

// One V-cycle with F relaxation: all intervals at once (0), a walk over them on level 1, which adds
// to where they led the difference of two steps, and the last sweep.
TEST(MultigridCycle, IsDrawnAsPapersDoIt) {
  const Cycle cycle = make_cycle({.coarsening = 4, .relaxations = 0}, 16, 1, SweepOrder::kForward);
  EXPECT_EQ("\n" + draw_cycle(cycle, 4), R"(
0 | 0000====...
1 | 000011====.
2 | 00001.1====
3 | .......====
)");
  EXPECT_EQ(length_of_cycle(cycle, 4), 11);
}

TEST(MultigridCycle, ReadsWhatUsersWrite) {
  const Multigrid all =
      parse_multigrid("levels=3,coarsening=8,forward=5,backward=2,relax=FCFCF,skip=yes");
  EXPECT_EQ(all, (Multigrid{3, 8, 5, 2, 2, true}));
  EXPECT_EQ(parse_multigrid(to_string(all)), all);
  EXPECT_EQ(parse_multigrid("relax=FC"), parse_multigrid("relax=FCF"));
  EXPECT_EQ(parse_multigrid("relax=F").relaxations, 0);
}

}  // namespace
}  // namespace tessera::multigrid_cycle_test
