#pragma once
// Graph + plan → one program per rank, through named passes:
//
//   rewrite   fuse, and cut reductions over space into partial sums          (rewrite.h)
//   place     layouts, homes, edge groups and their transfers                 (edges.h)
//   keep      what backward reads, what is recomputed                        (keep.h)
//   emit      forward, backward, transfers and reductions, in order          (emitter.h)
//   memory    Alloc and Free                                                 (memory.h)
//   check     proves order, liveness and termination                         (checker.h)
//
// Example:
//   Lowered lowered = lower(graph, plan, {.step = StepKind::kTrain});
//   Executor executor(lowered.graph, lowered.programs[rank], ...);

#include <vector>

#include "tessera/lower/chunks.h"
#include "tessera/lower/options.h"
#include "tessera/lower/program.h"
#include "tessera/plan/plan.h"

namespace tessera {

struct Lowered {
  Graph graph;  // rewritten; parameters, inputs and outputs as in the original
  std::vector<Program> programs;
  std::vector<Chunk> chunks;     // parts of the network, each of one stage
  std::vector<Members> holders;  // per parameter: the ranks that use it
};

/// Throws InvalidInput where the plan does not fit. The same result on every rank.
Lowered lower(const Graph& graph, const Plan& plan, const LowerOptions& options = {});

/// Elements that cross ranks in the halo exchanges of one forward pass: what a grid costs.
int64_t exchanged_elements(const Graph& graph, const Plan& plan);

}  // namespace tessera
