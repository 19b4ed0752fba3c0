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

/// The rows of the pieces of this micro-batch, or of all.
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

/// Forward of a loss, on one of several micro-batches. Where its statistics read predictions, all
/// forwards come first.
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

/// Running statistics are updated once a step, from all micro-batches: as soon as the last has been
/// here, or at the end of the step.
void Emitter::keep_for_buffers(NodeId id, BufferId gathered) {
  std::map<int, BufferId>& kept = statistics_for_buffers_[id];
  kept[micro_batch_] = gathered;
  if (updates_buffers_late(id) || static_cast<int>(kept.size()) < placed_.num_micro_batches())
    return;
  update_buffers(id);
  statistics_for_buffers_.erase(id);
}

/// GEMS leaves half of the micro-batches on other ranks; and buffers that several nodes share are
/// updated in the order of the nodes, by all of their holders.
bool Emitter::updates_buffers_late(NodeId id) const {
  const Node& node = graph_.node(id);
  if (node.buffers.empty() || node.op->forward_statistics(node.types).per_piece == 0) return false;
  return users_of_buffer_[node.buffers[0]] > 1 ||
         (placed_.plan.schedule == ScheduleKind::kGems && placed_.num_micro_batches() > 1);
}

void Emitter::update_buffers(NodeId id) {
  const Node& node = graph_.node(id);
  const std::map<int, BufferId>& kept = statistics_for_buffers_[id];
  std::vector<Box> boxes;
  std::vector<Range> rows_of_micro_batch;
  const int last = micro_batch_;
  for (micro_batch_ = 0; micro_batch_ < placed_.num_micro_batches(); ++micro_batch_) {
    const Rows rows = statistics_rows(id, /*whole_batch=*/false);
    const int64_t first = static_cast<int64_t>(boxes.size());
    boxes.insert(boxes.end(), rows.boxes.begin(), rows.boxes.end());
    rows_of_micro_batch.push_back({first, static_cast<int64_t>(boxes.size())});
  }
  micro_batch_ = last;
  const bool late = updates_buffers_late(id);
  const Range columns{0, node.op->forward_statistics(node.types).per_piece};
  const Box box{{0, static_cast<int64_t>(boxes.size())}, columns};
  BufferId all = kept.empty() ? -1 : kept.begin()->second;
  if (late || placed_.num_micro_batches() > 1) {
    all = add_buffer(fmt::format("{} statistics of the batch", node.name), BufferKind::kStatistics,
                     box, box, ElementType::kDouble);
    for (const auto& [m, gathered] : kept)
      append(Copy{{gathered, program_.buffers[gathered].box},
                  {all, {rows_of_micro_batch[m], columns}},
                  Combine::kStore});
  }
  if (late) give_rows_to_holders(id, all, rows_of_micro_batch);
  Run run{id, Phase::kUpdateBuffers, -1, boxes, {}};
  run.arguments.push_back({Role::kGathered, 0, {all, box}});
  append(std::move(run));
}

/// The ranks that ran a micro-batch have its rows; every other holder of the buffers gets them from
/// one of these.
void Emitter::give_rows_to_holders(NodeId id, BufferId all,
                                   const std::vector<Range>& rows_of_micro_batch) {
  const Members& holders = context_.holders[graph_.node(id).buffers[0]];
  const Range columns = program_.buffers[all].box[1];
  std::map<Members, std::vector<int>> micro_batches;  // by the ranks that ran them
  for (int m = 0; m < placed_.num_micro_batches(); ++m)
    micro_batches[placed_.ranks_of_node(id, m)].push_back(m);
  Exchange exchange;
  for (const auto& [members, of_members] : micro_batches) {
    size_t turn = 0;
    for (int holder : holders) {
      if (std::binary_search(members.begin(), members.end(), holder)) continue;
      const int giver = members[turn++ % members.size()];
      if (rank_ != holder && rank_ != giver) continue;
      Message message;
      message.peer = rank_ == holder ? giver : holder;
      int64_t filled = 0;
      for (int m : of_members) {
        const Box rows{rows_of_micro_batch[m], columns};
        message.segments.push_back({{all, rows}, filled});
        filled += rows.volume();
      }
      (rank_ == holder ? exchange.receives : exchange.sends).push_back(std::move(message));
    }
  }
  if (exchange.idle()) return;
  const std::string& name = graph_.node(id).name;
  add_strips(&exchange.sends, name + " statistics to", ElementType::kDouble, true);
  add_strips(&exchange.receives, name + " statistics from", ElementType::kDouble, false);
  const int channel = batch_statistics_channel(placed_, id);
  append(StartTransfer{channel, exchange.sends, exchange.receives});
  append(FinishTransfer{channel, exchange.strips()});
  if (!exchange.receives.empty()) append(Unpack{exchange.receives, Combine::kStore});
}

}  // namespace tessera
