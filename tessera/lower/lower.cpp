#include "tessera/lower/lower.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/lower/buckets.h"
#include "tessera/lower/checker.h"
#include "tessera/lower/edges.h"
#include "tessera/lower/emitter.h"
#include "tessera/lower/keep.h"
#include "tessera/lower/memory.h"
#include "tessera/lower/rewrite.h"

namespace tessera {
namespace {

/// Whether only losses read it, as what they aim at.
bool is_target(const Graph& graph, ValueId input) {
  const std::vector<Use>& uses = graph.value(input).uses;
  return !uses.empty() && std::all_of(uses.begin(), uses.end(), [&](const Use& use) {
    return !graph.node(use.node).op->differentiable(use.input);
  });
}

/// Targets may have fewer pixels than there are parts, as other values may.
void check_inputs(const Graph& graph, const Plan& plan) {
  for (ValueId input : graph.inputs())
    if (graph.type(input).element == Element::kReal && !is_target(graph, input))
      check_plan(plan, graph.type(input));
}

}  // namespace

Lowered lower(const Graph& graph, const Plan& plan, const LowerOptions& options) {
  check_inputs(graph, plan);
  const PlacedGraph placed = place(rewrite(graph, plan), plan);
  const BackwardValues backward = analyse_backward(placed.graph, options);
  const std::vector<BucketPlan> buckets = plan_buckets(placed.graph, options.bucket_elements);
  Lowered lowered;
  for (int rank = 0; rank < plan.num_ranks(); ++rank) {
    Emitter emitter(placed, backward, buckets, options, rank, plan.num_ranks());
    lowered.programs.push_back(emitter.emit());
    insert_allocations(&lowered.programs.back());
  }
  lowered.graph = placed.graph;
  check_programs(lowered.programs);
  return lowered;
}

int64_t exchanged_elements(const Graph& graph, const Plan& plan) {
  check_inputs(graph, plan);
  const PlacedGraph placed = place(rewrite(graph, plan), plan);
  int64_t total = 0;
  for (const ValuePlan& value : placed.values)
    for (const EdgeGroup& group : value.groups)
      for (const Move& move : group.moves)
        if (move.from != move.to) total += move.box.volume();
  return total;
}

}  // namespace tessera
