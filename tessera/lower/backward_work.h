#pragma once
// How much of backward is still to come on some ranks: what reductions may hide behind. It is told
// by the roofline whatever the schedule's costs are, in units that only proportions are taken of,
// and of whole values: all ranks must come to the same numbers, and parts are alike.

#include <map>
#include <vector>

#include "tessera/lower/step_plan.h"
#include "tessera/lower/task_costs.h"

namespace tessera {

class BackwardWork {
 public:
  /// All of a step's backward is to come.
  explicit BackwardWork(const StepPlan& step);

  /// The kernels that give a node's inputs or its weights their gradients, for one micro-batch.
  double input_gradient(NodeId node) const { return costs_[node].backward; }
  double weight_gradient(NodeId node) const { return costs_[node].weight; }
  /// They have run on these ranks.
  void ran(const Members& ranks, double work);
  /// What is to come of kernels that all members run.
  double left(const Members& members) const;

 private:
  std::vector<TaskCosts> costs_;    // per node
  std::map<Members, double> left_;  // by the ranks that run a kernel together
};

}  // namespace tessera
