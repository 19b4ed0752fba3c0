#include "tessera/lower/task_costs.h"

#include <algorithm>
#include <map>

namespace tessera {
namespace {

bool passes_any_gradient(const Node& node, const BackwardValues& backward) {
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (backward.passes_gradient(node, static_cast<int>(i))) return true;
  return false;
}

}  // namespace

TaskCosts& TaskCosts::operator+=(const TaskCosts& other) {
  forward += other.forward;
  backward += other.backward;
  weight += other.weight;
  return *this;
}

TaskCosts kernel_costs(const CostModel& model, const Graph& graph, NodeId id,
                       const BackwardValues& backward, const Box& out) {
  const Node& node = graph.node(id);
  const auto cost = [&](Phase phase) { return model.kernel(node, phase, out); };
  TaskCosts costs;
  costs.forward = node.op->gives_zeros() ? 0 : cost(Phase::kForward);
  if (node.op->forward_statistics(node.types).per_piece > 0)
    costs.forward += cost(Phase::kPieceStatistics);
  if (backward.recomputed[node.output]) costs.backward += cost(Phase::kRecompute);
  if (!backward.needs_gradient[node.output]) return costs;
  if (node.op->backward_statistics(node.types) > 0)
    costs.backward += cost(Phase::kPieceGradStatistics);
  if (passes_any_gradient(node, backward)) costs.backward += cost(Phase::kInputGradient);
  if (graph.has_trainable(node))
    (node.op->weight_gradient_from_statistics() ? costs.backward : costs.weight) +=
        cost(Phase::kWeightGradient);
  return costs;
}

std::vector<TaskCosts> chunk_costs(const CostModel& model, const PlacedGraph& placed,
                                   const BackwardValues& backward) {
  std::vector<TaskCosts> costs;
  for (const Chunk& chunk : placed.chunks) {
    std::map<int, TaskCosts> of_rank;
    for (NodeId node : chunk.nodes) {
      const std::vector<Piece>& pieces = placed.output_layout(node).pieces();
      for (size_t i = 0; i < pieces.size() / placed.num_micro_batches(); ++i)
        if (!pieces[i].box.empty())
          of_rank[pieces[i].rank] +=
              kernel_costs(model, placed.graph, node, backward, pieces[i].box);
    }
    TaskCosts most;
    for (const auto& [rank, each] : of_rank) {
      most.forward = std::max(most.forward, each.forward);
      most.backward = std::max(most.backward, each.backward);
      most.weight = std::max(most.weight, each.weight);
    }
    most += {model.task(TaskKind::kForward), model.task(TaskKind::kBackward),
             model.task(TaskKind::kWeight)};
    costs.push_back(most);
  }
  return costs;
}

}  // namespace tessera
