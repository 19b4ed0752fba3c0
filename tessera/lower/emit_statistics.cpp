#include <algorithm>

#include "tessera/lower/channels.h"
#include "tessera/lower/emitter.h"

namespace tessera {
namespace {

/// Boxes of all non-empty pieces, in rank-then-piece order: the rows of a gathered buffer.
std::vector<Box> boxes_in_rank_order(const Layout& layout, int num_ranks,
                                     std::vector<int64_t>* rows_of_rank) {
  std::vector<Box> boxes;
  for (int rank = 0; rank < num_ranks; ++rank) {
    const std::vector<int> pieces = layout.pieces_of(rank);
    for (int piece : pieces) boxes.push_back(layout.piece(piece).box);
    rows_of_rank->push_back(static_cast<int64_t>(pieces.size()));
  }
  return boxes;
}

}  // namespace

View Emitter::statistics_row(NodeId node, int piece, BufferId gathered) const {
  const Layout& layout = placed_.output_layout(node);
  int64_t row = 0;
  for (int rank = 0; rank < rank_; ++rank)
    row += static_cast<int64_t>(layout.pieces_of(rank).size());
  const std::vector<int>& here = pieces_here(graph_.node(node).output);
  row += std::find(here.begin(), here.end(), piece) - here.begin();
  return {gathered, {{row, row + 1}, program_.buffers[gathered].box[1]}};
}

/// Statistics of the pieces → gather over all ranks → merge, once a rank. Every rank merges the
/// same rows in the same order, so all get the same bits and no result is sent.
void Emitter::emit_statistics(NodeId id, Direction direction) {
  const Node& node = graph_.node(id);
  const bool forward = direction == Direction::kForward;
  const Statistics sizes =
      forward ? node.op->forward_statistics(node.types) : node.op->backward_statistics(node.types);
  if (sizes.per_piece == 0) return;
  std::vector<int64_t> rows_of_rank;
  const std::vector<Box> boxes =
      boxes_in_rank_order(placed_.output_layout(id), program_.num_ranks, &rows_of_rank);

  const std::string name = node.name + (forward ? " statistics" : " gradient statistics");
  const Box all{{0, static_cast<int64_t>(boxes.size())}, {0, sizes.per_piece}};
  const BufferId gathered =
      add_buffer(name, BufferKind::kStatistics, all, all, ElementType::kDouble);
  if (!forward) gathered_grad_statistics_[id] = gathered;
  for (int piece : pieces_here(node.output)) {
    Run run{id,
            forward ? Phase::kPieceStatistics : Phase::kPieceGradStatistics,
            piece,
            {placed_.output_layout(id).piece(piece).box},
            {}};
    if (forward) {
      for (size_t i = 0; i < node.inputs.size(); ++i)
        run.arguments.push_back(
            {Role::kInput, static_cast<int>(i), input_view(id, static_cast<int>(i), piece)});
      run.arguments.push_back({Role::kPieceStatistics, 0, statistics_row(id, piece, gathered)});
    } else {
      run.arguments = backward_arguments(id, piece);
    }
    append(std::move(run));
  }
  if (program_.num_ranks > 1) {
    const int channel = forward ? gather_channel(placed_, id) : grad_gather_channel(placed_, id);
    append(StartGather{channel, gathered, rows_of_rank});
    append(FinishGather{channel, gathered});
  }
  const Box flat{{0, sizes.merged}};
  const BufferId merged =
      add_buffer(name + " merged", BufferKind::kStatistics, flat, flat, ElementType::kDouble);
  Run merge{id, forward ? Phase::kMergeStatistics : Phase::kMergeGradStatistics, -1, boxes, {}};
  merge.arguments.push_back({Role::kGathered, 0, {gathered, all}});
  if (forward) {
    merge.arguments.push_back({Role::kMergedStatistics, 0, {merged, flat}});
    merged_statistics_[id] = merged;
  } else {
    if (merged_statistics_.contains(id)) {
      const BufferId first = merged_statistics_[id];
      merge.arguments.push_back({Role::kMergedStatistics, 0, {first, program_.buffers[first].box}});
    }
    merge.arguments.push_back({Role::kMergedGradStatistics, 0, {merged, flat}});
    merged_grad_statistics_[id] = merged;
  }
  append(std::move(merge));
}

}  // namespace tessera
