#include "tessera/lower/multigrid_cycle.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "tessera/base/error.h"

namespace tessera {
namespace {

/// The steps of all levels, in the solve's order.
class Hierarchy {
 public:
  Hierarchy(const Multigrid& multigrid, int num_layers, SweepOrder order) {
    std::vector<Range> fine;
    for (int layer = 0; layer < num_layers; ++layer) fine.push_back({layer, layer + 1});
    steps_.push_back(fine);
    const int64_t by = multigrid.coarsening;
    while (num_levels() < multigrid.levels && std::ssize(steps_.back()) > by)
      steps_.push_back(coarsened(steps_.back(), by));
    if (order == SweepOrder::kBackward)
      for (auto& level : steps_) std::reverse(level.begin(), level.end());
  }

  int num_levels() const { return static_cast<int>(steps_.size()); }
  int num_steps(int level) const { return static_cast<int>(steps_[level].size()); }
  const Range& layers(int level, int step) const { return steps_[level][step]; }
  /// The steps of the level below that a step stands for.
  Range children(int level, int step) const {
    const std::vector<Range>& below = steps_[level - 1];
    const Range& own = steps_[level][step];
    const auto inside = [&](const Range& range) { return own.contains(range); };
    const auto first = std::find_if(below.begin(), below.end(), inside);
    const auto end = std::find_if_not(first, below.end(), inside);
    return {first - below.begin(), end - below.begin()};
  }

 private:
  static std::vector<Range> coarsened(const std::vector<Range>& level, int64_t by) {
    std::vector<Range> coarse;
    for (int64_t first = 0; first < std::ssize(level); first += by) {
      const int64_t last = std::min(first + by, static_cast<int64_t>(std::ssize(level))) - 1;
      coarse.push_back({level[first].begin, level[last].end});
    }
    return coarse;
  }

  std::vector<std::vector<Range>> steps_;
};

/// A value for each point of a level but its last: where each step starts.
using States = std::vector<int>;

class CycleWriter {
 public:
  CycleWriter(const Multigrid& multigrid, int num_layers, SweepOrder order)
      : hierarchy_(multigrid, num_layers, order),
        relaxations_(static_cast<int>(multigrid.relaxations)),
        arrived_(hierarchy_.num_levels()),
        left_(hierarchy_.num_levels()) {
    ops_.emplace_back();
    for (int level = 1; level < hierarchy_.num_levels(); ++level) {
      children_.emplace_back();
      for (int step = 0; step < hierarchy_.num_steps(level); ++step)
        children_.back().push_back(hierarchy_.children(level, step));
    }
  }

  const Hierarchy& hierarchy() const { return hierarchy_; }
  const std::vector<CycleOp>& ops() const { return ops_; }
  const std::vector<Range>& intervals_of(int level) const { return children_[level]; }

  /// Whose steps have no corrections: a walk along the coarsest level, then F on each finer one.
  States first_guess() {
    const int coarsest = hierarchy_.num_levels() - 1;
    States states(hierarchy_.num_steps(coarsest), 0);
    walk(coarsest, &states);
    for (int level = coarsest - 1; level >= 0; --level) {
      States finer(hierarchy_.num_steps(level), 0);
      put_c_points(level, states, &finer);
      states = std::move(finer);
    }
    return states;
  }

  States v_cycle(int level, States states) {
    if (level + 1 == hierarchy_.num_levels()) {
      walk(level, &states);
      return states;
    }
    const std::vector<Range>& intervals = intervals_of(level);
    relax_f(level, &states);
    for (int i = 0; i < relaxations_; ++i) {
      const std::vector<int> arrived = arrivals(level, states);
      for (size_t j = 1; j < intervals.size(); ++j) states[intervals[j].begin] = arrived[j - 1];
      relax_f(level, &states);
    }
    States coarse;
    for (const Range& interval : intervals) coarse.push_back(states[interval.begin]);
    std::vector<int> arrived = arrivals(level, states);
    left_[level + 1].clear();
    for (size_t j = 0; j < coarse.size(); ++j)
      left_[level + 1].push_back(step(level + 1, static_cast<int>(j), coarse[j]));
    arrived_[level + 1] = std::move(arrived);
    put_c_points(level, v_cycle(level + 1, std::move(coarse)), &states);
    return states;
  }

 private:
  int add(const CycleOp& op) {
    const auto key = std::tuple(op.kind, op.level, op.layers.begin, op.from, op.now, op.then);
    const auto [found, is_new] = known_.try_emplace(key, static_cast<int>(ops_.size()));
    if (is_new) ops_.push_back(op);
    return found->second;
  }
  int step(int level, int index, int from) {
    return add({CycleOp::Kind::kStep, level, hierarchy_.layers(level, index), from});
  }
  /// A step of the level's equation.
  int advance(int level, int index, int from) {
    const int now = step(level, index, from);
    if (arrived_[level].empty() || now == left_[level][index])
      return arrived_[level].empty() ? now : arrived_[level][index];
    return add({CycleOp::Kind::kCorrect, level, hierarchy_.layers(level, index),
                arrived_[level][index], now, left_[level][index]});
  }
  void walk(int level, States* states) {
    for (size_t i = 1; i < states->size(); ++i)
      (*states)[i] = advance(level, static_cast<int>(i) - 1, (*states)[i - 1]);
  }
  void relax_f(int level, States* states) {
    for (const Range& interval : intervals_of(level))
      for (int64_t i = interval.begin + 1; i < interval.end; ++i)
        (*states)[i] = advance(level, static_cast<int>(i) - 1, (*states)[i - 1]);
  }
  /// Where each interval leads.
  std::vector<int> arrivals(int level, const States& states) {
    std::vector<int> arrived;
    for (const Range& interval : intervals_of(level))
      arrived.push_back(
          advance(level, static_cast<int>(interval.end) - 1, states[interval.end - 1]));
    return arrived;
  }
  void put_c_points(int level, const States& coarse, States* states) {
    for (size_t j = 0; j < coarse.size(); ++j) (*states)[intervals_of(level)[j].begin] = coarse[j];
    relax_f(level, states);
  }

  Hierarchy hierarchy_;
  int relaxations_;
  std::vector<std::vector<Range>> children_;  // per level but the coarsest: its intervals
  std::vector<std::vector<int>> arrived_;     // per level and step, of its equation; empty: none
  std::vector<std::vector<int>> left_;
  std::vector<CycleOp> ops_;
  std::map<std::tuple<CycleOp::Kind, int, int64_t, int, int, int>, int> known_;
};

/// What the starts depend on, and nothing else.
Cycle pruned(const std::vector<CycleOp>& ops, std::vector<int> starts) {
  std::vector<bool> used(ops.size(), false);
  used[0] = true;
  for (int start : starts) used[start] = true;
  for (size_t i = ops.size(); i-- > 1;)
    if (used[i])
      for (int read : {ops[i].from, ops[i].now, ops[i].then})
        if (read >= 0) used[read] = true;
  Cycle cycle;
  std::vector<int> place(ops.size(), -1);
  for (size_t i = 0; i < ops.size(); ++i) {
    if (!used[i]) continue;
    place[i] = static_cast<int>(cycle.ops.size());
    CycleOp op = ops[i];
    for (int* read : {&op.from, &op.now, &op.then})
      if (*read >= 0) *read = place[*read];
    cycle.ops.push_back(op);
  }
  for (int start : starts) cycle.starts.push_back(place[start]);
  return cycle;
}

}  // namespace

Cycle make_cycle(const Multigrid& multigrid, int num_layers, int iterations, SweepOrder order) {
  TESSERA_CHECK(num_layers > 0 && iterations > 0, "{} layers, {} iterations", num_layers,
                iterations);
  CycleWriter writer(multigrid, num_layers, order);
  const Hierarchy& hierarchy = writer.hierarchy();
  if (hierarchy.num_levels() == 1) return {{CycleOp()}, {{0, num_layers}}, {0}};
  States states(num_layers, 0);
  for (int i = 0; i < iterations; ++i)
    states = i == 0 && multigrid.skip ? writer.first_guess() : writer.v_cycle(0, std::move(states));
  std::vector<int> starts;
  for (const Range& interval : writer.intervals_of(0)) starts.push_back(states[interval.begin]);
  Cycle cycle = pruned(writer.ops(), std::move(starts));
  for (int step = 0; step < hierarchy.num_steps(1); ++step)
    cycle.intervals.push_back(hierarchy.layers(1, step));
  if (order == SweepOrder::kBackward) {
    std::reverse(cycle.intervals.begin(), cycle.intervals.end());
    std::reverse(cycle.starts.begin(), cycle.starts.end());
  }
  return cycle;
}

}  // namespace tessera
