#pragma once
// Graph + plan → one program per rank, through named passes:
//
//   rewrite   fuse, and cut reductions over space into partial sums          (rewrite.h)
//   place     layouts, homes and edge groups                                 (edges.h)
//   keep      what backward reads, what is recomputed                        (keep.h)
//   schedule  the order of the tasks                                         (schedule.h)
//   view      what one rank has to do with it, and its moves                 (rank_view.h)
//   emit      forward, backward, transfers, reductions, update, in order     (emitter.h)
//   widen     copies in float32 for kernels that need them, where values are narrow  (widen.h)
//   memory    Alloc and Free                                                 (memory.h)
//   check     proves order, liveness and termination                         (checker.h)
//
// The first four are the same on all ranks and are done once, in a Lowering; each rank then lowers
// its own program and nobody else's. Of small worlds all programs are proved together, too; in
// large ones the ranks compare their messages when they start (runtime/messages_agree.h).
//
// Example:
//   const Lowering lowering(graph, plan, {.step = StepKind::kTrain});
//   const Program program = lowering.program(rank);
//   Executor executor(lowering.graph(), program, ...);

#include <vector>

#include "tessera/lower/program.h"
#include "tessera/lower/step_plan.h"

namespace tessera {

/// Programs of more ranks than this are not proved together.
constexpr int kMostRanksProved = 64;

class Lowering {
 public:
  /// Throws InvalidInput where the plan does not fit. The same on every rank.
  Lowering(const Graph& graph, const Plan& plan, const LowerOptions& options = {});

  /// Rewritten; parameters, inputs and outputs are as in the original.
  const Graph& graph() const { return step_.graph(); }
  const Plan& plan() const { return step_.placed.plan; }
  int num_ranks() const { return plan().num_ranks(); }
  /// Per parameter: the ranks that use it.
  const std::vector<Members>& holders() const { return step_.holders; }
  const StepPlan& step() const { return step_; }

  /// One rank's program, proved by itself. Any thread may ask.
  Program program(int rank) const;
  /// Those of all ranks, proved together. This is for small worlds.
  std::vector<Program> programs() const;
  /// Proves the programs of a small world together; ranks of a large one compare their messages
  /// when they make their executors.
  void prove() const;

 private:
  StepPlan step_;
};

/// A small world, all of it.
struct Lowered {
  Graph graph;
  std::vector<Program> programs;
  std::vector<Members> holders;
};
Lowered lower(const Graph& graph, const Plan& plan, const LowerOptions& options = {});

/// Elements that cross ranks in the halo exchanges of one forward pass: what a grid costs.
int64_t exchanged_elements(const Graph& graph, const Plan& plan);

}  // namespace tessera
