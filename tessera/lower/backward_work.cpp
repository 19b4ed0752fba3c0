#include "tessera/lower/backward_work.h"

#include <algorithm>

namespace tessera {

BackwardWork::BackwardWork(const StepPlan& step) {
  const Roofline model;
  const Graph& graph = step.graph();
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes().size()); ++id) {
    const Box whole = Box::whole(graph.node(id).types.output.shape());
    costs_.push_back(kernel_costs(model, graph, id, step.backward, whole));
    if (!step.trains()) continue;
    for (int m = 0; m < step.num_micro_batches(); ++m)
      left_[step.placed.ranks_of_node(id, m)] += input_gradient(id) + weight_gradient(id);
  }
}

void BackwardWork::ran(const Members& ranks, double work) { left_[ranks] -= work; }

double BackwardWork::left(const Members& members) const {
  double sum = 0;
  for (const auto& [ranks, work] : left_)
    if (std::ranges::includes(ranks, members)) sum += work;
  return sum;
}

}  // namespace tessera
