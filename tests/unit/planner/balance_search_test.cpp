#include "tessera/planner/balance_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>

namespace tessera::balance_search_test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Calls `visit` with all ways to cut `num_units` into `num_segments`.
template <class Visit>
void for_each_partition(int num_units, int num_segments, Visit visit, std::vector<int> cuts = {0}) {
  if (static_cast<int>(cuts.size()) == num_segments) {
    cuts.push_back(num_units);
    return visit(cuts);
  }
  for (int cut = cuts.back() + 1; cut < num_units; ++cut) {
    std::vector<int> longer = cuts;
    longer.push_back(cut);
    for_each_partition(num_units, num_segments, visit, longer);
  }
}

/// A cost for every part of anything, drawn when it is first asked for. Few different values, so
/// that there are ties.
class RandomCosts {
 public:
  RandomCosts(int seed, int most) : generator_(seed), numbers_(1, most) {}
  double operator()(const std::vector<int>& key) {
    const auto [entry, is_new] = known_.try_emplace(key);
    if (is_new) entry->second = numbers_(generator_);
    return entry->second;
  }

 private:
  std::mt19937 generator_;
  std::uniform_int_distribution<int> numbers_;
  std::map<std::vector<int>, double> known_;
};

TEST(BalanceSearch, PartitionIsThatOfAnExhaustiveSearch) {
  for (int seed = 0; seed < 60; ++seed) {
    const int num_segments = 1 + seed % 4, num_units = num_segments + seed % 6;
    RandomCosts costs(seed, 6), ties(seed + 1000, 9);
    const auto cost = [&](int segment, int begin, int end) { return costs({segment, begin, end}); };
    const auto tie_cost = [&](int segment, int begin, int end) {
      return ties({segment, begin, end});
    };
    const auto value = [&](const std::vector<int>& cuts) {
      double largest = 0, tie = 0;
      for (int i = 0; i < num_segments; ++i) {
        largest = std::max(largest, cost(i, cuts[i], cuts[i + 1]));
        tie += tie_cost(i, cuts[i], cuts[i + 1]);
      }
      return std::pair(largest, tie);
    };
    std::pair best(kInfinity, kInfinity);
    for_each_partition(num_units, num_segments,
                       [&](const std::vector<int>& cuts) { best = std::min(best, value(cuts)); });
    EXPECT_EQ(value(best_partition(num_units, num_segments, cost, tie_cost)), best)
        << "seed " << seed;
  }
}

TEST(BalanceSearch, NestingIsThatOfAnExhaustiveSearch) {
  for (int seed = 0; seed < 60; ++seed) {
    const Center center = seed % 2 == 0 ? Center::kOnePart : Center::kTwoParts;
    const int num_rings = 1 + seed % 3;
    const int num_segments = 2 * num_rings - (center == Center::kOnePart ? 1 : 0);
    const int num_units = num_segments + seed % 5;
    RandomCosts costs(seed, 50);
    const auto cost = [&](int i, const Ring& ring) {
      return costs({i, ring.outer_begin, ring.inner_begin, ring.inner_end, ring.outer_end});
    };
    const auto largest = [&](const std::vector<int>& cuts) {
      double most = 0;
      for (int i = 0; i < num_rings; ++i) most = std::max(most, cost(i, ring_of(cuts, i)));
      return most;
    };
    double best = kInfinity;
    for_each_partition(num_units, num_segments,
                       [&](const std::vector<int>& cuts) { best = std::min(best, largest(cuts)); });
    const std::vector<int> cuts = best_nesting(num_units, num_rings, center, cost, kInfinity);
    ASSERT_EQ(cuts.size(), num_segments + 1u) << "seed " << seed;
    EXPECT_EQ(largest(cuts), best) << "seed " << seed;
    EXPECT_TRUE(best_nesting(num_units, num_rings, center, cost, best).empty());
    EXPECT_TRUE(best_nesting(num_segments - 1, num_rings, center, cost, kInfinity).empty());
  }
}

TEST(BalanceSearch, RingsAreWhatAStageHolds) {
  const std::vector<int> v{0, 2, 5, 8, 9, 12};  // stages 0 1 2 1 0
  EXPECT_EQ(ring_of(v, 0), (Ring{0, 2, 9, 12}));
  EXPECT_EQ(ring_of(v, 1), (Ring{2, 5, 8, 9}));
  EXPECT_EQ(ring_of(v, 2), (Ring{5, 8, 8, 8}));
  EXPECT_TRUE(ring_of(v, 2).is_one_part());
  const std::vector<int> pairs{0, 2, 5, 8, 9};  // stages 0 1 2 3 of GEMS
  EXPECT_EQ(ring_of(pairs, 1), (Ring{2, 5, 5, 8}));
}

/// Units of random weights; a segment costs their sum and a start-up.
struct Row {
  explicit Row(int seed, int size) {
    std::mt19937 generator(seed);
    for (int i = 0; i <= size; ++i) places.push_back(i);
    for (int i = 0; i < size; ++i) weights.push_back(1 + generator() % 100);
  }
  double cost(int begin, int end) const {
    double sum = 20;
    for (int i = begin; i < end; ++i) sum += weights[i];
    return sum;
  }
  std::vector<double> stage_costs(const StagedSegments& assignment) {
    ++num_measured;
    std::vector<double> costs;
    for (size_t i = 0; i + 1 < assignment.cuts.size(); ++i)
      costs.push_back(cost(assignment.cuts[i], assignment.cuts[i + 1]));
    return costs;
  }
  double optimum(int num_stages) const {
    const auto of_segment = [&](int, int begin, int end) { return cost(begin, end); };
    const int size = static_cast<int>(weights.size());
    const std::vector<int> cuts = best_partition(size, num_stages, of_segment, no_tie_cost);
    double largest = 0;
    for (int i = 0; i < num_stages; ++i) largest = std::max(largest, cost(cuts[i], cuts[i + 1]));
    return largest;
  }

  std::vector<NodeId> places;
  std::vector<double> weights;
  int num_measured = 0;
};

TEST(BalanceSearch, AModelThatIsRightCostsFewMeasurements) {
  Row row(1, 24);
  const StageCosts truth = [&](const StagedSegments& s) { return row.stage_costs(s); };
  Measurements measurements(truth, 50);
  const auto family = consecutive_stages(row.places, 4, [&](int begin, int end) {
    return std::vector<double>(4, row.cost(begin, end));
  });
  explore(family.get(), 50, &measurements);
  EXPECT_EQ(measurements.best_largest(), row.optimum(4));
  EXPECT_LE(row.num_measured, 5);  // the others have the benefit of the doubt
}

TEST(BalanceSearch, LearnsWhereTheModelIsWrongHereAndThere) {
  for (int seed = 0; seed < 10; ++seed) {
    Row row(seed, 24);
    RandomCosts percent(seed, 20);
    const StageCosts truth = [&](const StagedSegments& s) { return row.stage_costs(s); };
    Measurements measurements(truth, 60);
    const auto family = consecutive_stages(row.places, 4, [&](int begin, int end) {
      return std::vector<double>(4, row.cost(begin, end) * (0.9 + 0.01 * percent({begin, end})));
    });
    explore(family.get(), 60, &measurements);
    shift_cuts(row.places, &measurements);
    EXPECT_LE(measurements.best_largest(), 1.04 * row.optimum(4)) << "seed " << seed;
    EXPECT_LE(row.num_measured, 60);
  }
}

TEST(BalanceSearch, ShiftsNeighbouringCutsTogether) {
  const StageCosts truth = [](const StagedSegments& s) -> std::vector<double> {
    if (s.cuts == std::vector<NodeId>{0, 1, 2, 4}) return {3, 3, 9};
    if (s.cuts == std::vector<NodeId>{0, 2, 3, 4}) return {3, 3, 3};
    return {10, 10, 10};
  };
  Measurements measurements(truth, 100);
  measurements.measure({{0, 1, 2, 4}, {0, 1, 2}});
  shift_cuts({0, 1, 2, 3, 4}, &measurements);
  EXPECT_EQ(measurements.best().cuts, (std::vector<NodeId>{0, 2, 3, 4}));
}

TEST(BalanceSearch, ShiftsCutsAsLongAsThatHelpsAndMeasurementsLast) {
  Row row(3, 30);
  const StageCosts truth = [&](const StagedSegments& s) { return row.stage_costs(s); };
  const StagedSegments start{{0, 3, 6, 30}, {0, 1, 2}};
  Measurements few(truth, 5), many(truth, 1000);
  for (Measurements* measurements : {&few, &many}) {
    measurements->measure(start);
    shift_cuts(row.places, measurements);
  }
  EXPECT_EQ(few.left(), 0);
  EXPECT_LT(few.best_largest(), row.cost(6, 30));
  EXPECT_LE(many.best_largest(), 1.1 * row.optimum(3));
}

}  // namespace
}  // namespace tessera::balance_search_test
