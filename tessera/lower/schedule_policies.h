#pragma once
// What distinguishes the schedules. Each adds an order between tasks ("this forward only when that
// backward has ended") to the order that the data demand, and prefers some of the tasks that could
// begin. Limits on memory are such orders, too, and none of them is looked up while time passes: as
// long as the orders form no cycle, no limit can make the walk get stuck. Every policy says in its
// comment why they form none.
//
// Example: at most 3 micro-batches of a chunk in flight is, for all m >= 3,
//   graph.add_order(graph.id(TaskKind::kBackward, chunk, m - 3),
//                   graph.id(TaskKind::kForward, chunk, m));

#include <compare>
#include <vector>

#include "tessera/lower/schedule.h"

namespace tessera {

/// Of the tasks that a stage could begin it takes the smallest: backwards before forwards, because
/// they free memory and other stages wait for them; weight gradients last, nobody waits for them.
struct Preference {
  int kind = 0;
  int micro_batch = 0;
  int chunk = 0;
  auto operator<=>(const Preference&) const = default;
};

/// All tasks of a step, numbered from 0, and which of them must have ended before which.
class TaskGraph {
 public:
  /// Begins with the order that the data demand: a forward follows the forwards whose values it
  /// reads, a backward its forward and the backwards of its readers, weight gradients their
  /// backward.
  TaskGraph(const Pipeline& pipeline, ScheduleKind kind);

  int num_tasks() const { return num_kinds_ * num_chunks_ * num_micro_batches_; }
  int num_chunks() const { return num_chunks_; }
  int num_micro_batches() const { return num_micro_batches_; }
  bool has(TaskKind kind) const { return static_cast<int>(kind) < num_kinds_; }

  int id(TaskKind kind, int chunk, int micro_batch) const;
  Task task(int id) const;
  int stage(int id) const;
  double cost(int id) const;
  Preference preference(int id) const;

  void add_order(int before, int after);
  /// Each begins only when the one before it has ended.
  void add_sequence(const std::vector<int>& ids);
  const std::vector<int>& after(int id) const { return after_[id]; }
  int num_before(int id) const { return num_before_[id]; }

 private:
  ScheduleKind schedule_;
  int num_stages_;
  int num_kinds_;
  int num_chunks_;
  int num_micro_batches_;
  std::vector<int> stage_of_chunk_;
  std::vector<std::vector<double>> cost_;  // per kind and chunk
  std::vector<std::vector<int>> after_;
  std::vector<int> num_before_;
};

/// Adds the schedule's own order. Throws InvalidInput where it does not fit the pipeline.
void add_policy(TaskGraph& graph, const Pipeline& pipeline, ScheduleKind kind);

}  // namespace tessera
