#include "tessera/lower/emitter.h"

#include "tessera/base/error.h"
#include "tessera/lower/channels.h"

namespace tessera {

Emitter::Emitter(const PlacedGraph& placed, const BackwardValues& backward,
                 const std::vector<BucketPlan>& buckets, const LowerOptions& options, int rank,
                 int num_ranks)
    : placed_(placed),
      graph_(placed.graph),
      backward_(backward),
      buckets_(buckets),
      options_(options),
      rank_(rank) {
  program_.rank = rank;
  program_.num_ranks = num_ranks;
  const ValueId num_values = static_cast<ValueId>(graph_.values().size());
  recomputed_.assign(num_values, false);
  for (ValueId id = 0; id < num_values; ++id) {
    pieces_here_.push_back(placed_.values[id].layout.pieces_of(rank));
    instances_.push_back(empty_instance(id));
    gradients_.push_back(empty_instance(id));
  }
}

Program Emitter::emit() {
  const NodeId num_nodes = static_cast<NodeId>(graph_.nodes().size());
  set_up_loss();
  if (options_.step != StepKind::kForward) set_up_buckets();
  load_inputs();
  for (NodeId node = 0; node < num_nodes; ++node) emit_forward(node);
  if (program_.loss >= 0 && program_.num_ranks > 1)
    append(StartReduce{loss_channel(placed_), program_.loss});
  if (options_.step != StepKind::kForward) {
    prepare_gradients();
    for (NodeId node = num_nodes - 1; node >= 0; --node) {
      emit_backward(node);
      start_ready_buckets(node);
    }
  }
  keep_results();
  finish_step();
  return std::move(program_);
}

std::vector<BufferId> Emitter::Exchange::strips() const {
  std::vector<BufferId> strips;
  for (const auto* messages : {&sends, &receives})
    for (const Message& message : *messages) strips.push_back(message.strip);
  return strips;
}

BufferId Emitter::add_buffer(std::string name, BufferKind kind, const Box& box, const Box& interior,
                             ElementType element) {
  Buffer buffer;
  buffer.name = std::move(name);
  buffer.kind = kind;
  buffer.box = box;
  buffer.interior = interior;
  buffer.element = element;
  program_.buffers.push_back(std::move(buffer));
  return static_cast<BufferId>(program_.buffers.size() - 1);
}

ElementType Emitter::element_of(ValueId value) const {
  return graph_.type(value).element == Element::kIndex ? ElementType::kIndex : ElementType::kReal;
}

Emitter::Instance Emitter::empty_instance(ValueId value) const {
  const ValuePlan& plan = placed_.values[value];
  Instance instance{std::vector<BufferId>(plan.layout.num_pieces(), -1), {}};
  for (const EdgeGroup& group : plan.groups) instance.groups.emplace_back(group.needs.size(), -1);
  return instance;
}

void Emitter::fill(BufferId buffer) { append(Fill{buffer, {program_.buffers[buffer].box}}); }

void Emitter::set_up_loss() {
  for (const Node& node : graph_.nodes())
    if (node.op->is_loss() && program_.loss < 0) {
      const Box one{{0, 1}};
      program_.loss = add_buffer("loss", BufferKind::kLoss, one, one, ElementType::kDouble);
      fill(program_.loss);
    }
}

void Emitter::set_up_buckets() {
  for (size_t b = 0; b < buckets_.size(); ++b) {
    Bucket bucket;
    int64_t filled = 0;
    for (ParameterId id : buckets_[b].parameters) {
      bucket.parameters.push_back(id);
      bucket.offsets.push_back(filled);
      filled += graph_.parameters()[id].numel();
    }
    const Box box{{0, filled}};
    bucket.buffer = add_buffer(fmt::format("bucket {}", b), BufferKind::kBucket, box, box);
    if (options_.zero_gradients) fill(bucket.buffer);
    program_.buckets.push_back(std::move(bucket));
  }
}

void Emitter::start_ready_buckets(NodeId node) {
  if (!reduces_buckets()) return;
  for (size_t b = 0; b < buckets_.size(); ++b)
    if (buckets_[b].ready_after == node)
      append(StartReduce{bucket_channel(placed_, static_cast<int>(b)), program_.buckets[b].buffer});
}

void Emitter::finish_step() {
  if (program_.loss >= 0 && program_.num_ranks > 1)
    append(FinishReduce{loss_channel(placed_), program_.loss});
  for (size_t b = 0; reduces_buckets() && b < program_.buckets.size(); ++b)
    append(FinishReduce{bucket_channel(placed_, static_cast<int>(b)), program_.buckets[b].buffer});
  if (options_.step == StepKind::kTrain) append(Update{});
}

void Emitter::keep_results() {
  if (options_.keep_outputs)
    for (ValueId value : graph_.outputs())
      for (int piece : pieces_here(value)) {
        TESSERA_CHECK(instances_[value].homes[piece] >= 0, "output {} is not stored",
                      graph_.value(value).name);
        program_.outputs.push_back({value, home_view(value, piece)});
      }
  if (!options_.input_gradients || options_.step == StepKind::kForward) return;
  for (ValueId value : graph_.inputs()) {
    if (!backward_.needs_gradient[value]) continue;
    complete_gradient(value);
    for (int piece : pieces_here(value))
      program_.input_gradients.push_back(
          {value, {gradients_[value].homes[piece], placed_.values[value].layout.piece(piece).box}});
  }
}

}  // namespace tessera
