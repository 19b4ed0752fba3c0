#pragma once
// About how many bytes parts of the network hold of one micro-batch, task by task: read off the
// program of a rank that has the whole network. A part's buffers live from the first to the last
// instruction of that part that touches them; what other parts made has come before, and what they
// use is sent. It is not exact (when messages come depends on where the others are, and lowering
// treats some values otherwise where a cut is), so it is for proposing assignments, which are then
// lowered and measured.

#include <map>
#include <utility>
#include <vector>

#include "tessera/lower/program.h"
#include "tessera/planner/balance.h"

namespace tessera {

/// Units [first, second), ascending and disjoint where there are several. A *unit* is the nodes
/// between two neighbouring places to cut.
using Segments = std::vector<std::pair<int, int>>;

struct TaskBytes {
  double peak = 0;  // while it runs
  double left = 0;  // when it has ended
};

struct HeldBytes {
  double fixed = 0;              // whatever the micro-batch: parameters and what belongs to them
  std::vector<TaskBytes> tasks;  // forwards in order; backwards in reverse, with their weights'
};

struct LoweredStages;  // balance_lowering.h

class Footprint {
 public:
  /// Of a stage with this grid, and the plan's micro-batches and schedule.
  Footprint(const Graph& graph, const Plan& plan, const BalanceOptions& options,
            const std::vector<int64_t>& grid, const std::vector<NodeId>& places);

  HeldBytes held(const Segments& segments);

 private:
  using Step = std::vector<BufferId>;  // what one instruction touches
  /// Slots [first, second): one task. A unit's forward, backward and weight gradients are a slot
  /// each; they go through the units in order, in reverse and in reverse.
  using Task = std::pair<int, int>;
  struct Life {
    int first = 0;  // moments, one a step
    int last = 0;
    int walk = 0;  // that found it
  };

  void read_steps(const Program& program, const std::vector<int>& unit_of_node);
  void add_parameters(const LoweredStages& lowered, const Plan& plan,
                      const std::vector<int>& unit_of_node, const BalanceOptions& options);
  void add_gradient(const Program& program, ParameterId parameter, int unit, double bytes);
  double bucket_bytes(BufferId bucket, const Segments& segments) const;
  int slot(TaskKind kind, int unit) const;
  std::vector<Task> tasks_of(const Segments& segments) const;
  HeldBytes walk(const Segments& segments);
  void pass_on(BufferId buffer, const std::vector<Task>& tasks, const std::vector<int>& ends);

  const int num_units_;
  std::vector<double> fixed_bytes_;                          // per unit
  std::vector<std::vector<Step>> steps_;                     // per slot
  std::vector<double> buffer_bytes_;                         // per buffer
  std::map<BufferId, std::vector<double>> bytes_of_bucket_;  // per unit
  std::vector<std::vector<int>> slots_of_buffer_;            // ascending: that touch it
  std::vector<Life> lives_;  // per buffer, of the last walk that met it
  int num_walks_ = 0;
  std::map<Segments, HeldBytes> known_;
};

}  // namespace tessera
