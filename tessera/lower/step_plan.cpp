#include "tessera/lower/step_plan.h"

#include <algorithm>
#include <cmath>

#include "tessera/base/error.h"
#include "tessera/lower/multigrid.h"
#include "tessera/lower/rewrite.h"
#include "tessera/lower/task_costs.h"
#include "tessera/lower/workload.h"
#include "tessera/ops/norm/norm.h"

namespace tessera {
namespace {

/// Whether only losses read it, as their target.
bool is_target(const Graph& graph, ValueId input) {
  const std::vector<Use>& uses = graph.value(input).uses;
  return !uses.empty() && std::all_of(uses.begin(), uses.end(), [&](const Use& use) {
    return !graph.node(use.node).op->differentiable(use.input);
  });
}

/// Micro-batches must give the numbers that the graph means.
void check_micro_batches(const Graph& graph, const Plan& plan, const EarlyPart& early,
                         StepKind step) {
  for (const Node& node : graph.nodes())
    if (const int64_t parts = node.op->batch_parts(); parts > 0 && parts != plan.micro_batches)
      throw_error<InvalidInput>(
          "[{}] this operator takes the statistics of {}, which {} micro-batches do not have; "
          "{}use 1 "
          "micro-batch",
          node.name, parts == 1 ? "the whole batch" : fmt::format("{} parts of the batch", parts),
          plan.micro_batches,
          with_batch_parts(*node.op, plan.micro_batches) == nullptr
              ? ""
              : "say `--norm micro-batch` to normalise each micro-batch by its own, or ");
  if (early.late_loss >= 0 && step != StepKind::kForward && plan.schedule != ScheduleKind::kGpipe)
    throw_error<InvalidInput>(
        "[{}] this loss needs the predictions of the whole batch before its first gradient, and "
        "schedule {} asks for one earlier; use schedule gpipe, 1 micro-batch, or another loss",
        graph.node(early.late_loss).name, to_string(plan.schedule));
}

/// Outputs, which people and losses read, targets, and partial sums.
std::vector<bool> find_wide_values(const Graph& graph) {
  std::vector<bool> wide(graph.values().size(), false);
  for (ValueId output : graph.outputs()) wide[output] = true;
  for (ValueId input : graph.inputs()) wide[input] = wide[input] || is_target(graph, input);
  for (size_t value = 0; value < wide.size(); ++value)
    wide[value] = wide[value] || has_parts(graph.values()[value].type);
  return wide;
}

Pipeline pipeline_of(const PlacedGraph& placed, const BackwardValues& backward, StepKind step) {
  Pipeline pipeline;
  pipeline.num_stages = placed.plan.num_stages();
  pipeline.micro_batches = placed.num_micro_batches();
  pipeline.backward = step != StepKind::kForward;
  for (const Chunk& chunk : placed.chunks) {
    pipeline.stage_of_chunk.push_back(chunk.stage);
    pipeline.chunks_before.push_back(chunk.chunks_before);
  }
  const std::unique_ptr<CostModel> model = make_cost_model(placed.plan.schedule_costs);
  for (const TaskCosts& costs : chunk_costs(*model, placed, backward)) {
    pipeline.forward_cost.push_back(costs.forward);
    pipeline.backward_cost.push_back(costs.backward);
    pipeline.weight_cost.push_back(costs.weight);
  }
  return pipeline;
}

std::vector<int> bucket_of_parameters(const Graph& graph, const std::vector<BucketPlan>& buckets) {
  std::vector<int> bucket_of(graph.parameters().size(), -1);
  for (size_t b = 0; b < buckets.size(); ++b)
    for (ParameterId parameter : buckets[b].parameters) bucket_of[parameter] = static_cast<int>(b);
  return bucket_of;
}

std::vector<int> count_users_of_buffers(const Graph& graph) {
  std::vector<int> users(graph.parameters().size(), 0);
  for (const Node& node : graph.nodes())
    for (ParameterId buffer : node.buffers) ++users[buffer];
  return users;
}

}  // namespace

/// Targets may have fewer pixels than there are parts, as other values may.
void check_inputs(const Graph& graph, const Plan& plan, const LowerOptions& options) {
  for (ValueId output : graph.outputs())
    if (graph.value(output).producer < 0 && graph.value(output).uses.empty())
      throw_error<Unsupported>(
          "[{}] the network returns its input unchanged; there is no operator "
          "to run",
          graph.value(output).name);
  for (ValueId input : graph.inputs())
    if (graph.type(input).element == Element::kReal && !is_target(graph, input)) {
      ValueType type = graph.type(input);
      if (options.few_samples)
        type.axes[0].size = std::max(type.axes[0].size, plan.data * plan.micro_batches);
      check_plan(plan, type);
    }
}

bool has_parts(const ValueType& type) {
  return std::ranges::any_of(type.axes,
                             [](const Axis& axis) { return axis.kind == AxisKind::kPart; });
}

bool StepPlan::updates_buffers_late(NodeId id) const {
  const Node& node = graph().node(id);
  if (node.buffers.empty() || node.op->forward_statistics(node.types).per_piece == 0) return false;
  return users_of_buffer[node.buffers[0]] > 1 ||
         (placed.plan.schedule == ScheduleKind::kGems && num_micro_batches() > 1);
}

Box StepPlan::gradient_box(NodeId id, int input, int piece) const {
  const Node& node = graph().node(id);
  const ValueId value = node.inputs[input];
  if (gathers_gradient(id)) return placed.values[value].layout.piece(piece).box;
  const Box needed = placed.needed(id, input, piece);
  const Box in_image = intersect(needed, Box::whole(graph().type(value).shape()));
  const bool takes_any_box = node.op->reached(input, in_image, node.types).has_value();
  return takes_any_box ? in_image : needed;
}

Box StepPlan::gradient_box_of_group(ValueId value, int group, int need) const {
  const ValuePlan& plan = placed.values[value];
  Box box = intersect(plan.groups[group].needs[need].box, Box::whole(graph().type(value).shape()));
  const std::vector<Use>& uses = graph().value(value).uses;
  for (size_t u = 0; u < uses.size(); ++u)
    if (plan.group_of_use[u] == group && passes_gradient(uses[u].node, uses[u].input) &&
        !gathers_gradient(uses[u].node))
      box = hull(box, gradient_box(uses[u].node, uses[u].input, need));
  return box;
}

bool StepPlan::contributes(ValueId value, int group, int need) const {
  const std::vector<Use>& uses = graph().value(value).uses;
  for (size_t u = 0; u < uses.size(); ++u)
    if (placed.values[value].group_of_use[u] == group &&
        passes_gradient(uses[u].node, uses[u].input) && !gathers_gradient(uses[u].node) &&
        !gradient_box(uses[u].node, uses[u].input, need).empty())
      return true;
  return false;
}

StepPlan make_step_plan(const Graph& graph, const Plan& plan, const LowerOptions& options) {
  check_inputs(graph, plan, options);
  if (!(options.clip_norm >= 0 && std::isfinite(options.clip_norm)))
    throw_error<InvalidInput>(
        "[clip] a gradient norm of {} cannot be a limit; give one above 0, or 0 for none",
        options.clip_norm);
  check_workload(graph, plan);
  StepPlan step;
  step.options = options;
  step.scratch_bytes = plan.scratch_bytes;
  const bool trains = options.step != StepKind::kForward;
  step.placed = place(
      rewrite(graph, trains ? plan : without_multigrid(plan), options.without_rewrites), plan);
  step.early = find_early_part(step.graph(), plan.micro_batches);
  check_micro_batches(step.graph(), plan, step.early, options.step);
  step.stays_wide = find_wide_values(step.graph());
  step.backward = analyse_backward(step.graph(), options);
  step.holders = parameter_holders(step.placed);
  step.buckets = plan_buckets(step.graph(), step.holders, options.bucket_elements);
  step.bucket_of_parameter = bucket_of_parameters(step.graph(), step.buckets);
  step.users_of_buffer = count_users_of_buffers(step.graph());
  step.tasks = schedule_tasks(pipeline_of(step.placed, step.backward, options.step), plan.schedule);
  return step;
}

}  // namespace tessera
