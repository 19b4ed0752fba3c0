#include "tessera/lower/lower.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/lower/buckets.h"
#include "tessera/lower/checker.h"
#include "tessera/lower/early.h"
#include "tessera/lower/edges.h"
#include "tessera/lower/emitter.h"
#include "tessera/lower/keep.h"
#include "tessera/lower/memory.h"
#include "tessera/lower/rewrite.h"
#include "tessera/lower/task_costs.h"

namespace tessera {
namespace {

/// Whether only losses read it, as their target.
bool is_target(const Graph& graph, ValueId input) {
  const std::vector<Use>& uses = graph.value(input).uses;
  return !uses.empty() && std::all_of(uses.begin(), uses.end(), [&](const Use& use) {
    return !graph.node(use.node).op->differentiable(use.input);
  });
}

/// Targets may have fewer pixels than there are parts, as other values may.
void check_inputs(const Graph& graph, const Plan& plan) {
  for (ValueId output : graph.outputs())
    if (graph.value(output).producer < 0 && graph.value(output).uses.empty())
      throw_error<Unsupported>(
          "[{}] the network returns its input unchanged; there is no operator "
          "to run",
          graph.value(output).name);
  for (ValueId input : graph.inputs())
    if (graph.type(input).element == Element::kReal && !is_target(graph, input))
      check_plan(plan, graph.type(input));
}

/// Micro-batches must give the numbers that the graph means.
void check_micro_batches(const Graph& graph, const Plan& plan, const EarlyPart& early,
                         StepKind step) {
  for (const Node& node : graph.nodes())
    if (const int64_t parts = node.op->batch_parts(); parts > 0 && parts != plan.micro_batches)
      throw_error<InvalidInput>(
          "[{}] this batch norm takes the statistics of {}, which {} micro-batches do not have; "
          "say `--norm micro-batch` to normalise each micro-batch by its own, or use 1 micro-batch",
          node.name, parts == 1 ? "the whole batch" : fmt::format("{} parts of the batch", parts),
          plan.micro_batches);
  if (early.late_loss >= 0 && step != StepKind::kForward && plan.schedule != ScheduleKind::kGpipe)
    throw_error<InvalidInput>(
        "[{}] this loss needs the predictions of the whole batch before its first gradient, and "
        "schedule {} asks for one earlier; use schedule gpipe, 1 micro-batch, or another loss",
        graph.node(early.late_loss).name, to_string(plan.schedule));
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

/// All ranks write their programs side by side, task by task.
std::vector<Program> emit_programs(EmitContext* context) {
  const Plan& plan = context->placed.plan;
  std::vector<Emitter> emitters;
  for (int rank = 0; rank < plan.num_ranks(); ++rank) emitters.emplace_back(*context, rank);
  for (Emitter& emitter : emitters) emitter.set_up();
  for (const ScheduledTask& task : schedule_tasks(
           pipeline_of(context->placed, context->backward, context->options.step), plan.schedule)) {
    for (int rank : plan.stage_ranks(task.stage)) context->busy_until[rank] = task.end;
    for (Emitter& emitter : emitters) emitter.emit(task);
  }
  std::vector<Program> programs;
  for (Emitter& emitter : emitters) programs.push_back(emitter.finish());
  return programs;
}

}  // namespace

Lowered lower(const Graph& graph, const Plan& plan, const LowerOptions& options) {
  check_inputs(graph, plan);
  PlacedGraph placed = place(rewrite(graph, plan, options.without_rewrites), plan);
  const EarlyPart early = find_early_part(placed.graph, plan.micro_batches);
  check_micro_batches(placed.graph, plan, early, options.step);
  const BackwardValues backward = analyse_backward(placed.graph, options);
  Lowered lowered;
  lowered.holders = parameter_holders(placed);
  const std::vector<BucketPlan> buckets =
      plan_buckets(placed.graph, lowered.holders, options.bucket_elements);
  const std::vector<int> bucket_of = bucket_of_parameters(placed.graph, buckets);
  EmitContext context{
      placed,    backward, lowered.holders, buckets,
      bucket_of, early,    options,         std::vector<double>(plan.num_ranks(), 0)};
  lowered.programs = emit_programs(&context);
  for (Program& program : lowered.programs) insert_allocations(&program);
  check_programs(lowered.programs);
  lowered.chunks = placed.chunks;
  lowered.graph = std::move(placed.graph);
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
