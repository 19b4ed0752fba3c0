#pragma once
// A step before it is written down for any rank: the placed graph, what backward needs, which
// gradients go together, and the order of the tasks. The same on all ranks, and made once for all
// ranks of a process.

#include <vector>

#include "tessera/lower/buckets.h"
#include "tessera/lower/early.h"
#include "tessera/lower/edges.h"
#include "tessera/lower/keep.h"
#include "tessera/lower/schedule.h"

namespace tessera {

struct StepPlan {
  LowerOptions options;
  int64_t scratch_bytes = 0;     // as the plan says
  PlacedGraph placed;            // of the rewritten graph
  std::vector<bool> stays_wide;  // per value: float32 where others are narrower
  BackwardValues backward;
  EarlyPart early;
  std::vector<Members> holders;  // per parameter: the ranks that use it
  std::vector<BucketPlan> buckets;
  std::vector<int> bucket_of_parameter;  // -1: none
  std::vector<int> users_of_buffer;      // nodes, per parameter
  std::vector<ScheduledTask> tasks;

  const Graph& graph() const { return placed.graph; }
  int num_micro_batches() const { return placed.num_micro_batches(); }
  int micro_batch_of(ValueId value, int piece) const {
    return placed.values[value].micro_batch_of(piece, num_micro_batches());
  }
  /// Whether the running statistics of a node are updated at the end of the step, from rows that
  /// holders give each other: GEMS leaves half of the micro-batches on other ranks, and buffers
  /// that several nodes share are updated in the order of the nodes, by all of their holders.
  bool updates_buffers_late(NodeId node) const;
  /// Of derivatives, whose changes are zero: never computed, sent or stored (Op::gives_zeros).
  bool is_zero(ValueId value) const {
    const NodeId producer = graph().value(value).producer;
    return producer >= 0 && graph().node(producer).op->gives_zeros();
  }
  bool trains() const { return options.step != StepKind::kForward; }
  /// Whether backward of the node gives this input a gradient.
  bool passes_gradient(NodeId node, int input) const {
    return backward.passes_gradient(graph().node(node), input);
  }
  /// Whether backward of the node reads the gradient of its output with a halo, and gives its input
  /// the gradient of the piece alone.
  bool gathers_gradient(NodeId node) const {
    return !placed.values[graph().node(node).output].gradient_halo.needs.empty() &&
           passes_gradient(node, 0);
  }
  /// The group by which the gradient of a reading goes to its owners; -1: it is theirs already.
  int gradient_group(NodeId node, int input) const {
    return gathers_gradient(node) ? -1 : placed.group_of(node, input);
  }
  /// The box of an input that a piece of the node gives a gradient. Nobody reads that of the zeros
  /// around an image, so operators that take any box leave it out.
  Box gradient_box(NodeId node, int input, int piece) const;
  /// What holds these boxes of all readings in a group.
  Box gradient_box_of_group(ValueId value, int group, int need) const;
  /// Whether any reading has a gradient for a need. A need may be there for others only: a crop
  /// that reads nothing of it, beside a convolution that feeds no loss.
  bool contributes(ValueId value, int group, int need) const;
};

/// Whether its pixels are partial sums.
bool has_parts(const ValueType& type);

/// Throws InvalidInput where the plan does not fit the graph or the options.
StepPlan make_step_plan(const Graph& graph, const Plan& plan, const LowerOptions& options);

/// Throws where the plan does not fit an input of the graph.
void check_inputs(const Graph& graph, const Plan& plan, const LowerOptions& options = {});

}  // namespace tessera
