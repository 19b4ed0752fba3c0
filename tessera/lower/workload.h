#pragma once
// What a plan costs to be planned. Pieces, micro-batches and workers multiply, and each of them may
// be legal by itself: 4096x4096 pieces of an image of as many pixels would keep a machine busy for
// hours and fill its memory before the first step.

#include "tessera/graph/graph.h"
#include "tessera/plan/plan.h"

namespace tessera {

/// What lowering makes of a plan, in numbers that nothing has been allocated for yet.
struct Workload {
  int64_t placed = 0;      // pieces of all values, on all ranks
  int64_t of_program = 0;  // pieces that the operators of one rank run on
  int64_t lowered = 0;     // those of all programs that are held at once
};

Workload workload(const Graph& graph, const Plan& plan);

/// Throws InvalidInput, with the number and the limit, where lowering would take minutes; and
/// OutOfMemory where it would need more than this machine has free. The plan has been checked
/// against its input.
void check_workload(const Graph& graph, const Plan& plan);

/// The same for the programs of so many kinds of ranks, one after the other.
void check_kinds(const Workload& work, int64_t num_kinds);

/// The same for placing a graph several times, to choose among that many grids of `parts` workers.
void check_choice(const Graph& graph, const Plan& plan, int64_t parts, int64_t num_grids);

}  // namespace tessera
