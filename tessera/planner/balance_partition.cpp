#include "tessera/planner/balance_partition.h"

#include <algorithm>

#include "tessera/base/error.h"

namespace tessera {
namespace {

class LinearPartition {
 public:
  LinearPartition(int num_units, int num_segments, const SegmentCost& cost)
      : num_units_(num_units), num_segments_(num_segments), cost_(cost) {}

  /// The least largest cost of all partitions.
  double least_largest() const {
    std::vector<double> before = nothing_placed();
    for (int segment = 0; segment < num_segments_; ++segment) {
      std::vector<double> after(num_units_ + 1, kUnbounded);
      for (int end = segment + 1; end <= last_end(segment); ++end)
        for (int begin = segment; begin < end; ++begin)
          if (before[begin] < after[end])
            after[end] = std::min(after[end], std::max(before[begin], cost_(segment, begin, end)));
      before = std::move(after);
    }
    return before[num_units_];
  }

  /// The cuts with the least sum of tie costs whose segments all cost at most `largest`.
  std::vector<int> cuts_within(double largest, const SegmentCost& tie_cost) const {
    std::vector<std::vector<int>> begin_of(num_segments_, std::vector<int>(num_units_ + 1, -1));
    std::vector<double> before = nothing_placed();
    for (int segment = 0; segment < num_segments_; ++segment) {
      std::vector<double> after(num_units_ + 1, kUnbounded);
      for (int end = segment + 1; end <= last_end(segment); ++end)
        for (int begin = segment; begin < end; ++begin) {
          if (before[begin] == kUnbounded || cost_(segment, begin, end) > largest) continue;
          const double total = before[begin] + tie_cost(segment, begin, end);
          if (total >= after[end]) continue;
          after[end] = total;
          begin_of[segment][end] = begin;
        }
      before = std::move(after);
    }
    return walk_back(begin_of);
  }

 private:
  std::vector<double> nothing_placed() const {
    std::vector<double> totals(num_units_ + 1, kUnbounded);
    totals[0] = 0;
    return totals;
  }
  /// Leaves a unit for every segment that follows; the last takes all.
  int last_end(int segment) const { return num_units_ - (num_segments_ - 1 - segment); }

  std::vector<int> walk_back(const std::vector<std::vector<int>>& begin_of) const {
    std::vector<int> cuts(num_segments_ + 1, num_units_);
    for (int segment = num_segments_ - 1; segment >= 0; --segment)
      cuts[segment] = begin_of[segment][cuts[segment + 1]];
    TESSERA_CHECK(cuts[0] == 0, "no partition of {} units into {} segments", num_units_,
                  num_segments_);
    return cuts;
  }

  const int num_units_;
  const int num_segments_;
  const SegmentCost& cost_;
};

}  // namespace

std::vector<int> best_partition(int num_units, int num_segments, const SegmentCost& cost,
                                const SegmentCost& tie_cost) {
  TESSERA_CHECK(num_segments >= 1 && num_units >= num_segments, "{} units, {} segments", num_units,
                num_segments);
  const LinearPartition partition(num_units, num_segments, cost);
  return partition.cuts_within(partition.least_largest(), tie_cost);
}

}  // namespace tessera
