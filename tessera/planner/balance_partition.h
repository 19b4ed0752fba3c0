#pragma once
// The linear partition problem: cuts a row of units into consecutive segments so that the largest
// segment is as small as it can be. Exact, by dynamic programming over (segments so far, units so
// far): segments x units² / 2 costs are asked for, twice.
//
// Example:
//   best_partition(4, 2, [&](int, int begin, int end) { return sum(begin, end); }, no_tie_cost);
//   // of the units 3 1 1 2: {0, 1, 4}

#include <functional>
#include <limits>
#include <vector>

namespace tessera {

/// A cost that no assignment reaches.
inline constexpr double kUnbounded = std::numeric_limits<double>::infinity();

/// The cost of the units [begin, end) as segment number `segment`; infinite where that cannot be.
using SegmentCost = std::function<double(int segment, int begin, int end)>;

inline double no_tie_cost(int /*segment*/, int /*begin*/, int /*end*/) { return 0; }

/// Where the segments begin, followed by the number of units. Among partitions with the same
/// largest cost, one with the least sum of tie costs; among those, the one whose last cuts are
/// first. Every segment has at least one unit, so there must be as many units as segments.
std::vector<int> best_partition(int num_units, int num_segments, const SegmentCost& cost,
                                const SegmentCost& tie_cost);

}  // namespace tessera
