#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/lower/channels.h"
#include "tessera/lower/emitter.h"

namespace tessera {

/// Whose statistics a gathered buffer holds: those of the pieces of each member, in that order.
struct Emitter::Rows {
  Members members;
  std::vector<int64_t> counts;  // per member
  std::vector<Box> boxes;       // per row
  std::map<int, int64_t> row_of_piece;
};

/// Of the pieces of this micro-batch, or of all.
Emitter::Rows Emitter::statistics_rows(NodeId id, bool whole_batch) const {
  const Layout& layout = placed_.output_layout(id);
  const int per_micro_batch = layout.num_pieces() / placed_.num_micro_batches();
  Rows rows;
  rows.members =
      whole_batch ? placed_.all_ranks_of_node(id) : placed_.ranks_of_node(id, micro_batch_);
  for (int rank : rows.members) {
    const size_t before = rows.boxes.size();
    for (int piece : layout.pieces_of(rank)) {
      if (!whole_batch && piece / per_micro_batch != micro_batch_) continue;
      rows.row_of_piece[piece] = static_cast<int64_t>(rows.boxes.size());
      rows.boxes.push_back(layout.piece(piece).box);
    }
    rows.counts.push_back(static_cast<int64_t>(rows.boxes.size() - before));
  }
  return rows;
}

BufferId Emitter::add_gathered(NodeId id, const Rows& rows, Direction direction) {
  const Node& node = graph_.node(id);
  const bool forward = direction == Direction::kForward;
  const Statistics sizes =
      forward ? node.op->forward_statistics(node.types) : node.op->backward_statistics(node.types);
  const Box all{{0, static_cast<int64_t>(rows.boxes.size())}, {0, sizes.per_piece}};
  return add_buffer(
      fmt::format("{}{}", node.name, forward ? " statistics" : " gradient statistics"),
      BufferKind::kStatistics, all, all, ElementType::kDouble);
}

View Emitter::statistics_row(int piece, const Rows& rows, BufferId gathered) const {
  const int64_t row = rows.row_of_piece.at(piece);
  return {gathered, {{row, row + 1}, program_.buffers[gathered].box[1]}};
}

void Emitter::run_piece_statistics(NodeId id, const Rows& rows, BufferId gathered,
                                   Direction direction) {
  const Node& node = graph_.node(id);
  const bool forward = direction == Direction::kForward;
  for (int piece : pieces_here(node.output)) {
    Run run{id,
            forward ? Phase::kPieceStatistics : Phase::kPieceGradStatistics,
            piece,
            {placed_.output_layout(id).piece(piece).box},
            {}};
    if (forward) {
      for (int i = 0; i < static_cast<int>(node.inputs.size()); ++i)
        if (node.op->statistics_read(i))
          run.arguments.push_back({Role::kInput, i, input_view(id, i, piece)});
      run.arguments.push_back({Role::kPieceStatistics, 0, statistics_row(piece, rows, gathered)});
    } else {
      grad_statistics_rows_[{id, piece}] = statistics_row(piece, rows, gathered);
      run.arguments = backward_arguments(id, piece);
    }
    append(std::move(run));
  }
}

void Emitter::gather(int channel, const Rows& rows, BufferId gathered) {
  if (rows.members.size() == 1) return;
  append(StartGather{channel, gathered, rows.members, rows.counts});
  append(FinishGather{channel, gathered});
}

BufferId Emitter::merge(NodeId id, const Rows& rows, BufferId gathered, Direction direction) {
  const Node& node = graph_.node(id);
  const bool forward = direction == Direction::kForward;
  const Statistics sizes =
      forward ? node.op->forward_statistics(node.types) : node.op->backward_statistics(node.types);
  const Box flat{{0, sizes.merged}};
  const BufferId merged = add_buffer(fmt::format("{} merged", program_.buffers[gathered].name),
                                     BufferKind::kStatistics, flat, flat, ElementType::kDouble);
  Run merge{
      id, forward ? Phase::kMergeStatistics : Phase::kMergeGradStatistics, -1, rows.boxes, {}};
  merge.arguments.push_back({Role::kGathered, 0, {gathered, program_.buffers[gathered].box}});
  if (const auto found = merged_statistics_.find(now(id));
      !forward && found != merged_statistics_.end())
    merge.arguments.push_back(
        {Role::kMergedStatistics, 0, {found->second, program_.buffers[found->second].box}});
  merge.arguments.push_back(
      {forward ? Role::kMergedStatistics : Role::kMergedGradStatistics, 0, {merged, flat}});
  append(std::move(merge));
  return merged;
}

/// Statistics of the pieces → gather over the ranks of this micro-batch → merge, once a rank. Every
/// rank merges the same rows in the same order, so all get the same bits and no result is sent.
void Emitter::emit_statistics(NodeId id, Direction direction) {
  const Node& node = graph_.node(id);
  const bool forward = direction == Direction::kForward;
  const Statistics sizes =
      forward ? node.op->forward_statistics(node.types) : node.op->backward_statistics(node.types);
  if (sizes.per_piece == 0 || !runs(id)) return;
  const Rows rows = statistics_rows(id, /*whole_batch=*/false);
  const BufferId gathered = add_gathered(id, rows, direction);
  run_piece_statistics(id, rows, gathered, direction);
  gather(forward ? gather_channel(placed_, id, micro_batch_)
                 : grad_gather_channel(placed_, id, micro_batch_),
         rows, gathered);
  const BufferId merged = merge(id, rows, gathered, direction);
  (forward ? merged_statistics_ : merged_grad_statistics_)[now(id)] = merged;
  if (forward && !node.buffers.empty()) keep_for_buffers(id, gathered);
}

/// A loss that needs nothing but targets for its statistics: those of all micro-batches, at once.
void Emitter::emit_early_statistics(NodeId id) {
  const Node& node = graph_.node(id);
  for (int i = 0; i < static_cast<int>(node.inputs.size()); ++i) {
    const int group = placed_.use(id, i).group;
    if (group < 0 || !node.op->statistics_read(i)) continue;
    for (micro_batch_ = 0; micro_batch_ < placed_.num_micro_batches(); ++micro_batch_)
      finish_exchange(node.inputs[i], group);
  }
  for (micro_batch_ = 0; micro_batch_ < placed_.num_micro_batches(); ++micro_batch_)
    add_loss_statistics(id);
  merge_loss_statistics(id);
}

/// Adds this micro-batch's rows to those of the batch.
void Emitter::add_loss_statistics(NodeId id) {
  if (!runs(id)) return;
  const Rows rows = statistics_rows(id, /*whole_batch=*/true);
  auto [found, is_new] = loss_statistics_.try_emplace(id, -1);
  if (is_new) found->second = add_gathered(id, rows, Direction::kForward);
  run_piece_statistics(id, rows, found->second, Direction::kForward);
}

void Emitter::merge_loss_statistics(NodeId id) {
  const auto found = loss_statistics_.find(id);
  if (found == loss_statistics_.end()) return;
  const Rows rows = statistics_rows(id, /*whole_batch=*/true);
  gather(batch_statistics_channel(placed_, id), rows, found->second);
  const BufferId merged = merge(id, rows, found->second, Direction::kForward);
  for (int m = 0; m < placed_.num_micro_batches(); ++m) merged_statistics_[{id, m}] = merged;
}

/// Of one of several micro-batches. Where the statistics read predictions, all forwards come first.
void Emitter::forward_loss(NodeId id) {
  const Node& node = graph_.node(id);
  const bool has_statistics = node.op->forward_statistics(node.types).per_piece > 0;
  if (!has_statistics || context_.early.losses[id]) {
    run_forward(id, Phase::kForward);
    return start_loss_reduction();
  }
  add_loss_statistics(id);
  if (++losses_collected_[id] < placed_.num_micro_batches()) return;
  merge_loss_statistics(id);
  const int last = micro_batch_;
  for (micro_batch_ = 0; micro_batch_ < placed_.num_micro_batches(); ++micro_batch_) {
    run_forward(id, Phase::kForward);
    start_loss_reduction();
  }
  micro_batch_ = last;
}

/// Running statistics are updated once a step, from all micro-batches. GEMS leaves half of them on
/// other ranks, so there it waits for the end of the step.
void Emitter::keep_for_buffers(NodeId id, BufferId gathered) {
  std::map<int, BufferId>& kept = statistics_for_buffers_[id];
  kept[micro_batch_] = gathered;
  const bool mirrored =
      placed_.plan.schedule == ScheduleKind::kGems && placed_.num_micro_batches() > 1;
  if (mirrored || static_cast<int>(kept.size()) < placed_.num_micro_batches()) return;
  update_buffers(id);
  statistics_for_buffers_.erase(id);
}

void Emitter::update_buffers(NodeId id) {
  const std::map<int, BufferId>& kept = statistics_for_buffers_.at(id);
  std::vector<Box> boxes;
  std::vector<Range> rows_of_micro_batch;
  for (micro_batch_ = 0; micro_batch_ < placed_.num_micro_batches(); ++micro_batch_) {
    const Rows rows = statistics_rows(id, /*whole_batch=*/false);
    const int64_t first = static_cast<int64_t>(boxes.size());
    boxes.insert(boxes.end(), rows.boxes.begin(), rows.boxes.end());
    rows_of_micro_batch.push_back({first, static_cast<int64_t>(boxes.size())});
  }
  micro_batch_ = placed_.num_micro_batches() - 1;
  BufferId all = kept.begin()->second;
  if (placed_.num_micro_batches() > 1) {
    const Range columns = program_.buffers[all].box[1];
    const Box box{{0, static_cast<int64_t>(boxes.size())}, columns};
    all = add_buffer(fmt::format("{} of the batch", program_.buffers[all].name),
                     BufferKind::kStatistics, box, box, ElementType::kDouble);
    for (const auto& [m, gathered] : kept)
      append(Copy{{gathered, program_.buffers[gathered].box},
                  {all, {rows_of_micro_batch[m], columns}},
                  Combine::kStore});
    exchange_mirrored_rows(id, all, rows_of_micro_batch);
  }
  Run run{id, Phase::kUpdateBuffers, -1, boxes, {}};
  run.arguments.push_back({Role::kGathered, 0, {all, program_.buffers[all].box}});
  append(std::move(run));
}

/// Each rank of a stage and its counterpart on the mirrored one give each other what they have.
void Emitter::exchange_mirrored_rows(NodeId id, BufferId all,
                                     const std::vector<Range>& rows_of_micro_batch) {
  const Members even = placed_.ranks_of_node(id, 0), odd = placed_.ranks_of_node(id, 1);
  if (even == odd) return;
  const bool is_even = std::binary_search(even.begin(), even.end(), rank_);
  const Members &own = is_even ? even : odd, &other = is_even ? odd : even;
  const auto index = std::find(own.begin(), own.end(), rank_) - own.begin();
  Exchange exchange;
  exchange.sends.resize(1);
  exchange.receives.resize(1);
  for (size_t m = 0; m < rows_of_micro_batch.size(); ++m) {
    Message& message = ((m % 2 == 0) == is_even ? exchange.sends : exchange.receives)[0];
    message.peer = other[index];
    const int64_t offset = message.segments.empty() ? 0
                                                    : message.segments.back().offset +
                                                          message.segments.back().view.box.volume();
    message.segments.push_back(
        {{all, {rows_of_micro_batch[m], program_.buffers[all].box[1]}}, offset});
  }
  const std::string& name = graph_.node(id).name;
  add_strips(&exchange.sends, name + " statistics to", ElementType::kDouble, true);
  add_strips(&exchange.receives, name + " statistics from", ElementType::kDouble, false);
  const int channel = batch_statistics_channel(placed_, id);
  append(StartTransfer{channel, exchange.sends, exchange.receives});
  append(FinishTransfer{channel, exchange.strips()});
  append(Unpack{exchange.receives, Combine::kStore});
}

}  // namespace tessera
