#pragma once
// How many micro-batches a rank has under way, and how far they are, at each of its tasks: read off
// a schedule. With what each of them holds (balance_footprint.h) it gives the bytes of the rank.

#include <functional>
#include <utility>
#include <vector>

#include "tessera/lower/schedule.h"
#include "tessera/planner/balance_footprint.h"

namespace tessera {

/// What segments hold of one micro-batch that goes through all of them.
using HoldingOf = std::function<HeldBytes(const Segments&)>;

class Flight {
 public:
  /// The tasks that one rank runs, in their order.
  explicit Flight(const std::vector<ScheduledTask>& tasks);

  /// The most bytes of the rank where its chunks are these segments; infinite where there are more
  /// or fewer of them.
  double bytes(const Segments& segments, const HoldingOf& holding_of) const;

 private:
  /// Of one micro-batch.
  struct State {
    int track = 0;
    int num_done = 0;
    auto operator<=>(const State&) const = default;
  };
  struct Moment {
    State now;                                  // of the micro-batch whose next task runs
    std::vector<std::pair<State, int>> others;  // with their numbers
    auto operator<=>(const Moment&) const = default;
  };

  size_t num_chunks_ = 0;
  std::vector<std::vector<size_t>> tracks_;  // which of the chunks a micro-batch goes through
  std::vector<Moment> moments_;
};

}  // namespace tessera
