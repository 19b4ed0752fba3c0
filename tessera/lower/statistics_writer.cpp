#include "tessera/lower/statistics_writer.h"

#include <algorithm>

#include "tessera/lower/channels.h"
#include "tessera/ops/chain/linearised.h"

namespace tessera {

void StatisticsWriter::forward(NodeId id, int m) {
  const Node& node = writer_.graph.node(id);
  if (node.op->forward_statistics(node.types).per_piece == 0 || !writer_.here.runs(id, m)) return;
  if (const NodeId at_point = node_at_point(id); at_point >= 0) {
    writer_.merged_statistics[{id, m}] = writer_.merged_statistics.at({at_point, m});
    return;
  }
  Climb climb = start(id, Pass::kForward, statistics_channel(writer_.placed, id, m, 0),
                      writer_.placed.ranks_of_node(id, m), piece_rows(id, m));
  const BufferId row = finish(&climb);
  writer_.merged_statistics[{id, m}] = merge(id, row);
  if (!node.buffers.empty()) keep_for_buffers(id, m, row);
}

/// A derivative has the statistics of the node at whose point it is taken; -1 where `id` is none, or
/// that node runs elsewhere.
NodeId StatisticsWriter::node_at_point(NodeId id) const {
  const Node& node = writer_.graph.node(id);
  const Op* op = linearised_operator(*node.op);
  for (size_t i = 0; op != nullptr && i < node.inputs.size(); ++i) {
    if (!node.op->statistics_read(static_cast<int>(i))) continue;
    for (const Use& use : writer_.graph.value(node.inputs[i]).uses)
      if (writer_.graph.node(use.node).op.get() == op &&
          writer_.placed.stage_of_node[use.node] == writer_.placed.stage_of_node[id])
        return use.node;
  }
  return -1;
}

Climb StatisticsWriter::start_half(NodeId id, int m, int half, const Range& channels) {
  return start(id, Pass::kForward, statistics_channel(writer_.placed, id, m, half),
               writer_.placed.ranks_of_node(id, m), piece_rows(id, m, channels));
}

BufferId StatisticsWriter::finish_first_half(NodeId id, int m, Climb* climb) {
  const BufferId row = finish(climb);
  writer_.merged_statistics[{id, m}] = merge(id, row);
  return row;
}

/// What is merged in the end is what would have been merged without halves, to the bit: in the row
/// of a half the other channels stand for nothing.
void StatisticsWriter::finish_second_half(NodeId id, int m, Climb* climb, BufferId first_half) {
  const BufferId row = combine(id, Pass::kForward, {first_half, finish(climb)});
  writer_.merged_statistics[{id, m}] = merge(id, row);
  if (!writer_.graph.node(id).buffers.empty()) keep_for_buffers(id, m, row);
}

Climb StatisticsWriter::start_gradients(NodeId id, int m, const std::vector<BufferId>& rows) {
  return start(id, Pass::kBackward, grad_statistics_channel(writer_.placed, id, m),
               writer_.placed.ranks_of_node(id, m), rows);
}

BufferId StatisticsWriter::add_row(NodeId id, Pass pass) {
  const Node& node = writer_.graph.node(id);
  const bool forward = pass == Pass::kForward;
  const int64_t size = forward ? node.op->forward_statistics(node.types).per_piece
                               : node.op->backward_statistics(node.types);
  return writer_.add_buffer(node.name + (forward ? " statistics" : " gradient statistics"),
                            BufferKind::kStatistics, Box{{0, size}}, ElementType::kDouble);
}

std::vector<BufferId> StatisticsWriter::piece_rows(NodeId id, int m,
                                                   const std::optional<Range>& channels) {
  const Node& node = writer_.graph.node(id);
  std::vector<BufferId> rows;
  for (int piece : writer_.here.pieces(node.output, m)) {
    Box box = writer_.placed.output_layout(id).piece(piece).box;
    if (channels) box[1] = *channels;
    Run run = writer_.begin_run(id, Phase::kPieceStatistics, piece, box);
    for (int i = 0; i < static_cast<int>(node.inputs.size()); ++i)
      if (node.op->statistics_read(i))
        run.arguments.push_back({Role::kInput, i, values_.input(id, i, piece, box)});
    rows.push_back(add_row(id, Pass::kForward));
    run.arguments.push_back({Role::kPieceStatistics, 0, writer_.whole(rows.back())});
    writer_.append(std::move(run));
  }
  return rows;
}

BufferId StatisticsWriter::combine(NodeId id, Pass pass, const std::vector<BufferId>& rows) {
  if (rows.size() == 1) return rows[0];
  const BufferId combined = add_row(id, pass);
  if (rows.empty()) {
    writer_.fill(combined);
    return combined;
  }
  Run run;
  run.node = id;
  run.phase = pass == Pass::kForward ? Phase::kCombineStatistics : Phase::kCombineGradStatistics;
  for (size_t i = 0; i < rows.size(); ++i)
    run.arguments.push_back({Role::kRow, static_cast<int>(i), writer_.whole(rows[i])});
  run.arguments.push_back({Role::kCombined, 0, writer_.whole(combined)});
  writer_.append(std::move(run));
  return combined;
}

Climb StatisticsWriter::start(NodeId id, Pass pass, int channel, const Members& members,
                              const std::vector<BufferId>& rows) {
  const auto found = std::lower_bound(members.begin(), members.end(), writer_.here.rank());
  Climb climb;
  climb.node = id;
  climb.pass = pass;
  climb.channel = channel;
  climb.members = members;
  climb.own = static_cast<int>(found - members.begin());
  climb.row = combine(id, pass, rows);
  climb.levels = merge_tree(static_cast<int>(members.size()), climb.own);
  start_level(&climb);
  return climb;
}

/// Gives this rank's row to its takers, and gets those of the other blocks.
void StatisticsWriter::start_level(Climb* climb) {
  if (climb->level == climb->levels.size()) return;
  const TreeLevel& level = climb->levels[climb->level];
  climb->exchange = {};
  climb->of_blocks.clear();
  for (int taker : level.takers)
    climb->exchange.sends.push_back(
        {climb->members[taker], climb->row, {{writer_.whole(climb->row), 0}}});
  for (int member : level.rows) {
    const BufferId row = member == climb->own ? climb->row : add_row(climb->node, climb->pass);
    climb->of_blocks.push_back(row);
    if (member != climb->own)
      climb->exchange.receives.push_back({climb->members[member], row, {{writer_.whole(row), 0}}});
  }
  exchanges_.start(climb->channel, climb->exchange, /*finished_here=*/true);
}

BufferId StatisticsWriter::finish(Climb* climb) {
  for (; climb->level < climb->levels.size(); start_level(climb)) {
    exchanges_.finish(climb->channel, climb->exchange);
    climb->row = combine(climb->node, climb->pass, climb->of_blocks);
    ++climb->level;
  }
  return climb->row;
}

BufferId StatisticsWriter::merge(NodeId id, BufferId row) {
  const Node& node = writer_.graph.node(id);
  const BufferId merged = writer_.add_buffer(
      node.name + " merged statistics", BufferKind::kStatistics,
      Box{{0, node.op->forward_statistics(node.types).merged}}, ElementType::kDouble);
  Run run;
  run.node = id;
  run.phase = Phase::kMergeStatistics;
  run.arguments = {{Role::kRow, 0, writer_.whole(row)},
                   {Role::kMergedStatistics, 0, writer_.whole(merged)}};
  writer_.append(std::move(run));
  return merged;
}

void StatisticsWriter::early_loss(NodeId id) {
  const Node& node = writer_.graph.node(id);
  const int micro_batches = writer_.step.num_micro_batches();
  for (int i = 0; i < static_cast<int>(node.inputs.size()); ++i) {
    const int group = writer_.placed.group_of(id, i);
    if (group < 0 || !node.op->statistics_read(i)) continue;
    for (int m = 0; m < micro_batches; ++m) values_.finish_exchange(node.inputs[i], group, m);
  }
  for (int m = 0; m < micro_batches; ++m) add_loss_rows(id, m);
  merge_loss(id);
}

void StatisticsWriter::add_loss_rows(NodeId id, int m) {
  if (!writer_.here.runs(id, m)) return;
  std::vector<BufferId>& rows = loss_rows_[id];
  const std::vector<BufferId> more = piece_rows(id, m);
  rows.insert(rows.end(), more.begin(), more.end());
}

void StatisticsWriter::merge_loss(NodeId id) {
  const auto found = loss_rows_.find(id);
  if (found == loss_rows_.end()) return;
  Climb climb = start(id, Pass::kForward, batch_statistics_channel(writer_.placed, id),
                      writer_.placed.all_ranks_of_node(id), found->second);
  const BufferId merged = merge(id, finish(&climb));
  for (int m = 0; m < writer_.step.num_micro_batches(); ++m)
    writer_.merged_statistics[{id, m}] = merged;
}

/// Running statistics are updated once a step, from all micro-batches: as soon as the last has been
/// here, or at the end of the step.
void StatisticsWriter::keep_for_buffers(NodeId id, int m, BufferId row) {
  std::map<int, BufferId>& kept = rows_for_buffers_[id];
  kept[m] = row;
  if (!writer_.step.updates_buffers_late(id) &&
      static_cast<int>(kept.size()) == writer_.step.num_micro_batches())
    update_buffers(id);
}

void StatisticsWriter::finish_step() {
  for (NodeId id = 0; id < static_cast<NodeId>(writer_.graph.nodes().size()); ++id) {
    if (!writer_.step.updates_buffers_late(id)) continue;
    const Members& holders = writer_.step.holders[writer_.graph.node(id).buffers[0]];
    if (holds(holders, writer_.here.rank())) update_buffers(id);
  }
}

void StatisticsWriter::update_buffers(NodeId id) {
  std::map<int, BufferId>& rows = rows_for_buffers_[id];
  if (writer_.step.updates_buffers_late(id)) give_rows_to_holders(id, &rows);
  const Node& node = writer_.graph.node(id);
  Run run;
  run.node = id;
  run.phase = Phase::kUpdateBuffers;
  for (size_t i = 0; i < node.buffers.size(); ++i)
    run.arguments.push_back({Role::kRunning, static_cast<int>(i), writer_.weight(node.buffers[i])});
  for (const auto& [m, row] : rows) run.arguments.push_back({Role::kRow, m, writer_.whole(row)});
  writer_.append(std::move(run));
}

/// The ranks that ran a micro-batch have its row; every other holder of the buffers gets it from
/// one of these.
void StatisticsWriter::give_rows_to_holders(NodeId id, std::map<int, BufferId>* rows) {
  const Members& holders = writer_.step.holders[writer_.graph.node(id).buffers[0]];
  const int rank = writer_.here.rank();
  Exchange exchange;
  for (int m = 0; m < writer_.step.num_micro_batches(); ++m) {
    const Members members = writer_.placed.ranks_of_node(id, m);
    size_t turn = 0;
    for (int holder : holders) {
      if (holds(members, holder)) continue;
      const int giver = members[turn++ % members.size()];
      if (rank == holder) (*rows)[m] = add_row(id, Pass::kForward);
      if (rank == holder)
        exchange.receives.push_back({giver, rows->at(m), {{writer_.whole(rows->at(m)), 0}}});
      if (rank == giver)
        exchange.sends.push_back({holder, rows->at(m), {{writer_.whole(rows->at(m)), 0}}});
    }
  }
  const int channel = batch_statistics_channel(writer_.placed, id);
  exchanges_.start(channel, exchange, /*finished_here=*/true);
  exchanges_.finish(channel, exchange);
}

}  // namespace tessera
