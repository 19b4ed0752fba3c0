#include "tessera/lower/emitter.h"

#include <limits>

#include "tessera/base/error.h"
#include "tessera/lower/channel_halves.h"

namespace tessera {

Emitter::Emitter(const StepPlan& step, int rank)
    : step_(step),
      writer_(step, rank),
      exchanges_(&writer_),
      values_(&writer_, &exchanges_),
      statistics_(&writer_, &exchanges_, &values_),
      buckets_(&writer_),
      gradients_(&writer_, &exchanges_, &values_, &statistics_, &buckets_) {}

Program Emitter::emit() {
  set_up();
  for (const ScheduledTask& task : step_.tasks) emit(task);
  finish();
  return std::move(writer_.program);
}

void Emitter::set_up() {
  const Graph& graph = step_.graph();
  const NodeId num_nodes = static_cast<NodeId>(graph.nodes().size());
  writer_.append(Enter{Enter::Part::kSetUp, {}, 0});
  buckets_.set_up();
  for (int m = 0; m < step_.num_micro_batches(); ++m) {
    for (ValueId value : graph.inputs())
      if (step_.early.values[value]) values_.load(value, m);
    for (NodeId node = 0; node < num_nodes; ++node)
      if (step_.early.nodes[node]) forward(node, m);
  }
  for (NodeId node = 0; node < num_nodes; ++node)
    if (step_.early.losses[node]) statistics_.early_loss(node);
}

void Emitter::emit(const ScheduledTask& scheduled) {
  const Task& task = scheduled.task;
  const Chunk& chunk = step_.placed.chunks[task.chunk];
  const Graph& graph = step_.graph();
  exchanges_.begin(scheduled);
  if (writer_.here.on_stage(scheduled.stage)) {
    exchanges_.finish_sends(scheduled.begin);
    writer_.append(Enter{Enter::Part::kTask, task, chunk.stage});
  }
  if (task.kind == TaskKind::kForward) {
    for (ValueId value : graph.inputs())
      if (!step_.early.values[value] && step_.placed.values[value].chunk == task.chunk)
        values_.load(value, task.micro_batch);
    for (NodeId node : chunk.nodes)
      if (!step_.early.nodes[node]) forward(node, task.micro_batch);
    return;
  }
  const bool weights_apart = splits_backward(step_.placed.plan.schedule);
  for (auto node = chunk.nodes.rbegin(); node != chunk.nodes.rend(); ++node) {
    if (task.kind == TaskKind::kBackward)
      gradients_.backward(*node, task.micro_batch, !weights_apart);
    else if (!graph.node(*node).op->weight_gradient_from_statistics())
      gradients_.weight_gradient(*node, task.micro_batch);
  }
  gradients_.run_held_back();
}

void Emitter::forward(NodeId id, int m) {
  values_.finish_exchanges(id, m);
  const bool is_loss = step_.graph().node(id).op->is_loss();
  if (is_loss && step_.num_micro_batches() > 1) return forward_loss(id, m);
  if (const auto halves = channel_halves(step_.placed, id, m); halves && writer_.here.runs(id, m))
    return forward_by_halves(id, m, halves->first, halves->second);
  statistics_.forward(id, m);
  if (step_.is_zero(step_.graph().node(id).output)) return;
  values_.forward(id, m);
  if (is_loss) buckets_.loss_added();
}

void Emitter::forward_by_halves(NodeId id, int m, const Range& first, const Range& second) {
  Climb of_first = statistics_.start_half(id, m, 0, first);
  Climb of_second = statistics_.start_half(id, m, 1, second);
  const BufferId row = statistics_.finish_first_half(id, m, &of_first);
  values_.forward_channels(id, m, first);
  statistics_.finish_second_half(id, m, &of_second, row);
  values_.forward(id, m, second);
}

/// Forward of a loss, on one of several micro-batches. Where its statistics read predictions, all
/// forwards come first.
void Emitter::forward_loss(NodeId id, int m) {
  const Node& node = step_.graph().node(id);
  const auto run = [&](int micro_batch) {
    values_.run_forward(id, micro_batch, Phase::kForward);
    buckets_.loss_added();
  };
  const bool has_statistics = node.op->forward_statistics(node.types).per_piece > 0;
  if (!has_statistics || step_.early.losses[id]) return run(m);
  statistics_.add_loss_rows(id, m);
  if (++losses_collected_[id] < step_.num_micro_batches()) return;
  statistics_.merge_loss(id);
  for (int each = 0; each < step_.num_micro_batches(); ++each) run(each);
}

void Emitter::finish() {
  writer_.append(Enter{Enter::Part::kFinish, {}, 0});
  exchanges_.finish_sends(std::numeric_limits<double>::infinity());
  keep_results();
  statistics_.finish_step();
  buckets_.finish_step();
}

void Emitter::keep_results() {
  const Graph& graph = step_.graph();
  for (int m = 0; m < step_.num_micro_batches(); ++m) {
    if (step_.options.keep_outputs)
      for (ValueId value : graph.outputs())
        for (int piece : writer_.here.pieces(value, m)) {
          TESSERA_CHECK(values_.has_home(value, piece), "output {} is not stored",
                        graph.value(value).name);
          writer_.program.outputs.push_back({value, values_.home(value, piece)});
        }
    if (!step_.options.input_gradients || !step_.trains()) continue;
    for (ValueId value : graph.inputs()) {
      if (!step_.backward.needs_gradient[value] || !writer_.here.owns(value, m)) continue;
      for (const auto& [piece, view] : gradients_.complete(value, m))
        writer_.program.input_gradients.push_back({value, view});
    }
  }
}

}  // namespace tessera
