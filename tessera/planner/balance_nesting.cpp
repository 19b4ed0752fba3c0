#include "tessera/planner/balance_nesting.h"

#include <algorithm>

#include "tessera/base/error.h"

namespace tessera {
namespace {

/// What is left for the stages inside: units [begin, end).
struct Rest {
  int begin = 0;
  int end = 0;
};

/// One number for every rest.
template <class T>
class RestTable {
 public:
  RestTable(int num_units, T initial) : width_(num_units + 1), entries_(width_ * width_, initial) {}
  T& operator[](const Rest& rest) { return entries_[rest.begin * width_ + rest.end]; }

 private:
  size_t width_;
  std::vector<T> entries_;
};

class Nesting {
 public:
  Nesting(int num_units, int num_rings, Center center, const RingCost& cost, double limit)
      : num_units_(num_units),
        num_peeled_(center == Center::kOnePart ? num_rings - 1 : num_rings),
        center_(center),
        cost_(cost),
        limit_(limit) {}

  std::vector<int> solve() {
    largest_.assign(num_peeled_ + 1, RestTable<double>(num_units_, limit_));
    outside_.assign(num_peeled_ + 1, RestTable<Rest>(num_units_, {}));
    const Rest everything{0, num_units_};
    largest_[0][everything] = 0;
    for (int ring = 0; ring < num_peeled_; ++ring)
      for_each_rest(everything, ring == 0 ? 0 : 1, units_inside(ring) + 2,
                    [&](const Rest& outer) { peel(ring, outer); });
    return best_cuts();
  }

 private:
  /// The least number of units for the rings inside of one.
  int units_inside(int ring) const {
    return 2 * (num_peeled_ - 1 - ring) + (center_ == Center::kOnePart ? 1 : 0);
  }

  template <class Visit>
  void for_each_rest(const Rest& outer, int least_margin, int least_size, Visit visit) {
    for (int begin = outer.begin + least_margin; begin <= outer.end; ++begin)
      for (int end = outer.end - least_margin; end >= begin + least_size; --end)
        visit({begin, end});
  }

  /// Tries all rings that leave room inside.
  void peel(int ring, const Rest& outer) {
    const double so_far = largest_[ring][outer];
    if (so_far >= limit_) return;
    for_each_rest(outer, 1, units_inside(ring), [&](const Rest& inner) {
      double& known = largest_[ring + 1][inner];
      if (so_far >= known) return;
      const double cost = cost_(ring, {outer.begin, inner.begin, inner.end, outer.end});
      if (std::max(so_far, cost) >= known) return;
      known = std::max(so_far, cost);
      outside_[ring + 1][inner] = outer;
    });
  }

  /// A center of one part takes the rest; a ring as center has left none.
  double cost_of_center(const Rest& rest) const {
    if (center_ == Center::kOnePart)
      return cost_(num_peeled_, {rest.begin, rest.end, rest.end, rest.end});
    return rest.begin == rest.end ? 0 : limit_;
  }

  std::vector<int> best_cuts() {
    double best = limit_;
    Rest best_rest;
    const int least_size = center_ == Center::kOnePart ? 1 : 0;
    for_each_rest({0, num_units_}, num_peeled_ == 0 ? 0 : 1, least_size, [&](const Rest& rest) {
      if (largest_[num_peeled_][rest] >= best) return;
      const double total = std::max(largest_[num_peeled_][rest], cost_of_center(rest));
      if (total >= best) return;
      best = total;
      best_rest = rest;
    });
    return best < limit_ ? walk_out(best_rest) : std::vector<int>();
  }

  std::vector<int> walk_out(Rest rest) {
    std::vector<int> begins, ends;
    for (int ring = num_peeled_; ring >= 0; --ring) {
      begins.push_back(rest.begin);
      ends.push_back(rest.end);
      rest = outside_[ring][rest];
    }
    std::reverse(begins.begin(), begins.end());
    if (center_ == Center::kTwoParts) begins.pop_back();  // it is the first end, too
    begins.insert(begins.end(), ends.begin(), ends.end());
    return begins;
  }

  const int num_units_;
  const int num_peeled_;  // rings with two parts
  const Center center_;
  const RingCost& cost_;
  const double limit_;
  std::vector<RestTable<double>> largest_;  // by rings peeled: the best largest ring around a rest
  std::vector<RestTable<Rest>> outside_;    // ... and the rest that the last was peeled from
};

}  // namespace

std::vector<int> best_nesting(int num_units, int num_rings, Center center, const RingCost& cost,
                              double limit) {
  TESSERA_CHECK(num_rings >= 1, "{} rings", num_rings);
  if (num_units < 2 * num_rings - (center == Center::kOnePart ? 1 : 0)) return {};
  return Nesting(num_units, num_rings, center, cost, limit).solve();
}

Ring ring_of(const std::vector<int>& cuts, int ring_index) {
  const int last = static_cast<int>(cuts.size()) - 1;
  const bool is_one_part = 2 * ring_index + 1 == last;
  return {cuts[ring_index], cuts[ring_index + 1],
          is_one_part ? cuts[ring_index + 1] : cuts[last - ring_index - 1],
          cuts[last - ring_index]};
}

}  // namespace tessera
