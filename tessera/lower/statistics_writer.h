#pragma once
// Statistics over the pieces of all ranks: rows of pieces, combined on each rank, then up a tree
// over the ranks (merge_tree.h). Rows cross as transfers, and every rank combines and merges for
// itself, in the same order: all have the same bits.

#include <map>
#include <optional>
#include <vector>

#include "tessera/lower/merge_tree.h"
#include "tessera/lower/value_writer.h"

namespace tessera {

/// A row on its way up the tree, in which the first level is under way.
struct Climb {
  NodeId node = -1;
  Pass pass = Pass::kForward;
  int channel = -1;
  Members members;
  int own = 0;
  BufferId row = -1;
  std::vector<TreeLevel> levels;
  size_t level = 0;
  Exchange exchange;                // of this level
  std::vector<BufferId> of_blocks;  // rows that it brings together
};

class StatisticsWriter {
 public:
  StatisticsWriter(ProgramWriter* writer, ExchangeWriter* exchanges, ValueWriter* values)
      : writer_(*writer), exchanges_(*exchanges), values_(*values) {}

  /// Forward statistics of a node over one micro-batch, and what kernels read of them.
  void forward(NodeId node, int micro_batch);
  /// The same for half of the channels at a time (channel_halves.h). Kernels of the first half run
  /// after finish_first_half(), which returns the row that the second half is added to.
  Climb start_half(NodeId node, int micro_batch, int half, const Range& channels);
  BufferId finish_first_half(NodeId node, int micro_batch, Climb* climb);
  void finish_second_half(NodeId node, int micro_batch, Climb* climb, BufferId first_half);

  /// Rows of its pieces' gradients on their way to one row of the micro-batch.
  Climb start_gradients(NodeId node, int micro_batch, const std::vector<BufferId>& rows);
  /// The row of all, on every rank.
  BufferId finish(Climb* climb);
  /// Some rows as one; a rank without pieces has a row of zeros, which stands for nothing.
  BufferId combine(NodeId node, Pass pass, const std::vector<BufferId>& rows);

  /// A loss needs statistics of the whole batch. This adds those of a micro-batch.
  void add_loss_rows(NodeId node, int micro_batch);
  /// Makes what was added one row, and merges it.
  void merge_loss(NodeId node);
  /// Adds and merges those of all micro-batches, for a loss that needs nothing but targets.
  void early_loss(NodeId node);

  /// Updates the running statistics that are due at the end of the step, of nodes held here.
  void finish_step();

 private:
  NodeId node_at_point(NodeId node) const;
  std::vector<BufferId> piece_rows(NodeId node, int micro_batch,
                                   const std::optional<Range>& channels = std::nullopt);
  Climb start(NodeId node, Pass pass, int channel, const Members& members,
              const std::vector<BufferId>& rows);
  void start_level(Climb* climb);
  BufferId merge(NodeId node, BufferId row);
  BufferId add_row(NodeId node, Pass pass);
  void keep_for_buffers(NodeId node, int micro_batch, BufferId row);
  void update_buffers(NodeId node);
  void give_rows_to_holders(NodeId node, std::map<int, BufferId>* rows);

  ProgramWriter& writer_;
  ExchangeWriter& exchanges_;
  ValueWriter& values_;
  std::map<NodeId, std::vector<BufferId>> loss_rows_;           // of the whole batch
  std::map<NodeId, std::map<int, BufferId>> rows_for_buffers_;  // by micro-batch
};

}  // namespace tessera
