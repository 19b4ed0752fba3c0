#include "tessera/lower/emitter.h"

#include <algorithm>
#include <limits>

#include "tessera/base/error.h"
#include "tessera/lower/channels.h"

namespace tessera {
namespace {

bool has(const Members& members, int rank) {
  return std::binary_search(members.begin(), members.end(), rank);
}

}  // namespace

Emitter::Emitter(const EmitContext& context, int rank)
    : context_(context),
      placed_(context.placed),
      graph_(context.placed.graph),
      backward_(context.backward),
      options_(context.options),
      rank_(rank),
      pieces_here_(placed_.num_micro_batches()) {
  program_.rank = rank;
  program_.num_ranks = placed_.plan.num_ranks();
  for (int stage = 0; stage < placed_.plan.num_stages(); ++stage)
    on_stage_.push_back(has(placed_.plan.stage_ranks(stage), rank));
  for (size_t id = 0; id < context.holders.size(); ++id)
    if (has(context.holders[id], rank)) program_.parameters.push_back(static_cast<ParameterId>(id));
  users_of_buffer_.resize(graph_.parameters().size(), 0);
  for (const Node& node : graph_.nodes())
    for (ParameterId buffer : node.buffers) ++users_of_buffer_[buffer];
  const ValueId num_values = static_cast<ValueId>(graph_.values().size());
  for (auto& of_values : pieces_here_) of_values.resize(num_values);
  for (ValueId id = 0; id < num_values; ++id) {
    const Layout& layout = placed_.values[id].layout;
    for (int piece : layout.pieces_of(rank))
      pieces_here_[piece * placed_.num_micro_batches() / layout.num_pieces()][id].push_back(piece);
    instances_.push_back(empty_instance(id));
    gradients_.push_back(empty_instance(id));
  }
}

void Emitter::set_up() {
  append(Enter{Enter::Part::kSetUp, {}, 0});
  set_up_loss();
  if (options_.step != StepKind::kForward) {
    set_up_buckets();
    prepare_gradients();
  }
  for (micro_batch_ = 0; micro_batch_ < placed_.num_micro_batches(); ++micro_batch_) {
    for (ValueId value : graph_.inputs())
      if (context_.early.values[value]) load_input(value);
    for (NodeId node = 0; node < static_cast<NodeId>(graph_.nodes().size()); ++node)
      if (context_.early.nodes[node]) emit_forward(node);
  }
  for (NodeId node = 0; node < static_cast<NodeId>(graph_.nodes().size()); ++node)
    if (context_.early.losses[node]) emit_early_statistics(node);
  micro_batch_ = 0;
}

void Emitter::emit(const ScheduledTask& scheduled) {
  const Task& task = scheduled.task;
  const Chunk& chunk = placed_.chunks[task.chunk];
  micro_batch_ = task.micro_batch;
  if (on_stage_[scheduled.stage]) {
    finish_sends(scheduled.begin);
    append(Enter{Enter::Part::kTask, task, chunk.stage});
  }
  if (task.kind == TaskKind::kForward) {
    for (ValueId value : graph_.inputs())
      if (!context_.early.values[value] && placed_.values[value].chunk == task.chunk)
        load_input(value);
    for (NodeId node : chunk.nodes)
      if (!context_.early.nodes[node]) emit_forward(node);
    return;
  }
  for (auto node = chunk.nodes.rbegin(); node != chunk.nodes.rend(); ++node) {
    if (task.kind == TaskKind::kBackward)
      emit_backward(*node, !splits_backward(placed_.plan.schedule));
    else if (!graph_.node(*node).op->weight_gradient_from_statistics())
      emit_weight_gradient(*node);
  }
}

Program Emitter::finish() {
  append(Enter{Enter::Part::kFinish, {}, 0});
  finish_sends(std::numeric_limits<double>::infinity());
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

bool Emitter::owns(ValueId value) const {
  return on_stage_[placed_.plan.place_of_stage(placed_.values[value].stage, micro_batch_)];
}

/// Whether a consumer of the group runs here for this micro-batch.
bool Emitter::reads(ValueId value, int group) const {
  const std::vector<Need>& needs = placed_.values[value].groups[group].needs;
  const size_t count = needs.size() / placed_.num_micro_batches();
  const auto first = needs.begin() + static_cast<std::ptrdiff_t>(count * micro_batch_);
  return std::any_of(first, first + static_cast<std::ptrdiff_t>(count),
                     [&](const Need& need) { return need.rank == rank_; });
}

Emitter::Instance Emitter::empty_instance(ValueId value) const {
  const ValuePlan& plan = placed_.values[value];
  Instance instance{std::vector<BufferId>(plan.layout.num_pieces(), -1), {}};
  for (const EdgeGroup& group : plan.groups) instance.groups.emplace_back(group.needs.size(), -1);
  return instance;
}

/// Forgets the value's buffers of this micro-batch.
void Emitter::forget_instance(ValueId value) {
  const auto forget = [&](std::vector<BufferId>& buffers) {
    const auto count = static_cast<std::ptrdiff_t>(buffers.size()) / placed_.num_micro_batches();
    std::fill_n(buffers.begin() + count * micro_batch_, count, -1);
  };
  forget(instances_[value].homes);
  for (std::vector<BufferId>& group : instances_[value].groups) forget(group);
}

void Emitter::fill(BufferId buffer) { append(Fill{buffer, {program_.buffers[buffer].box}}); }

void Emitter::set_up_loss() {
  for (const Node& node : graph_.nodes())
    pending_losses_ += node.op->is_loss() ? placed_.num_micro_batches() : 0;
  if (pending_losses_ == 0) return;
  const Box one{{0, 1}};
  program_.loss = add_buffer("loss", BufferKind::kLoss, one, one, ElementType::kDouble);
  fill(program_.loss);
}

void Emitter::set_up_buckets() {
  bucket_buffers_.assign(context_.buckets.size(), -1);
  bucket_started_.assign(context_.buckets.size(), false);
  count_contributions();
  for (size_t b = 0; b < context_.buckets.size(); ++b) {
    if (!has(context_.buckets[b].holders, rank_)) continue;
    Bucket bucket;
    bucket.holders = context_.buckets[b].holders;
    int64_t filled = 0;
    for (ParameterId id : context_.buckets[b].parameters) {
      bucket.parameters.push_back(id);
      bucket.offsets.push_back(filled);
      filled += graph_.parameters()[id].numel();
    }
    const Box box{{0, filled}};
    bucket.buffer = add_buffer(fmt::format("bucket {}", b), BufferKind::kBucket, box, box);
    bucket_buffers_[b] = bucket.buffer;
    if (options_.zero_gradients) fill(bucket.buffer);
    program_.buckets.push_back(std::move(bucket));
  }
}

/// How often backward adds to each bucket, on any rank.
void Emitter::count_contributions() {
  pending_contributions_.assign(context_.buckets.size(), 0);
  for (const Node& node : graph_.nodes()) {
    if (!backward_.needs_gradient[node.output]) continue;
    for (ParameterId parameter : node.parameters)
      if (const int bucket = context_.bucket_of_parameter[parameter]; bucket >= 0)
        pending_contributions_[bucket] += placed_.num_micro_batches();
  }
}

void Emitter::contributed(const Node& node) {
  for (ParameterId parameter : node.parameters)
    if (const int bucket = context_.bucket_of_parameter[parameter];
        bucket >= 0 && --pending_contributions_[bucket] == 0)
      start_bucket(bucket);
}

bool Emitter::reduces(size_t bucket) const {
  return options_.reduce_gradients && bucket_buffers_[bucket] >= 0 &&
         context_.buckets[bucket].holders.size() > 1;
}

void Emitter::start_bucket(size_t b) {
  if (bucket_started_[b]) return;
  bucket_started_[b] = true;
  if (!reduces(b)) return;
  start_reduce(bucket_channel(placed_, static_cast<int>(b)), bucket_buffers_[b],
               context_.buckets[b].holders);
}

void Emitter::start_reduce(int channel, BufferId buffer, const Members& members) {
  append(StartReduce{channel, buffer, members});
  started_reductions_.push_back({channel, buffer, members});
}

/// All ranks want to know the loss.
void Emitter::start_loss_reduction() {
  if (--pending_losses_ > 0 || program_.num_ranks == 1) return;
  Members everyone(program_.num_ranks);
  for (int rank = 0; rank < program_.num_ranks; ++rank) everyone[rank] = rank;
  start_reduce(loss_channel(placed_), program_.loss, everyone);
}

/// Ends the sends that have been received by the schedule's time `now`.
void Emitter::finish_sends(double now) {
  std::erase_if(pending_sends_, [&](const PendingSend& send) {
    if (send.received > now) return false;
    append(FinishTransfer{send.channel, send.strips});
    return true;
  });
}

void Emitter::finish_step() {
  for (NodeId node = 0; node < static_cast<NodeId>(graph_.nodes().size()); ++node)
    if (updates_buffers_late(node) && has(context_.holders[graph_.node(node).buffers[0]], rank_))
      update_buffers(node);
  for (size_t b = 0; b < bucket_started_.size(); ++b) start_bucket(b);
  for (const FinishReduce& reduce : started_reductions_) append(reduce);
  if (options_.step == StepKind::kTrain) append(Update{});
}

void Emitter::keep_results() {
  for (micro_batch_ = 0; micro_batch_ < placed_.num_micro_batches(); ++micro_batch_) {
    if (options_.keep_outputs)
      for (ValueId value : graph_.outputs())
        for (int piece : pieces_here(value)) {
          TESSERA_CHECK(instances_[value].homes[piece] >= 0, "output {} is not stored",
                        graph_.value(value).name);
          program_.outputs.push_back({value, home_view(value, piece)});
        }
    if (!options_.input_gradients || options_.step == StepKind::kForward) continue;
    for (ValueId value : graph_.inputs()) {
      if (!backward_.needs_gradient[value] || !owns(value)) continue;
      complete_gradient(value);
      for (int piece : pieces_here(value))
        program_.input_gradients.push_back(
            {value,
             {gradients_[value].homes[piece], placed_.values[value].layout.piece(piece).box}});
    }
  }
}

}  // namespace tessera
