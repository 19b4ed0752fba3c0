#pragma once
// Statistics over the pieces of all ranks: rows of pieces, combined on each rank, then up a tree
// over the ranks (merge_tree.h). Rows cross as transfers, and every rank combines and merges for
// itself, in the same order: all have the same bits.

#include <map>
#include <vector>

#include "tessera/lower/value_writer.h"

namespace tessera {

class StatisticsWriter {
 public:
  StatisticsWriter(ProgramWriter* writer, ExchangeWriter* exchanges, ValueWriter* values)
      : writer_(*writer), exchanges_(*exchanges), values_(*values) {}

  /// Forward statistics of a node over one micro-batch, and what kernels read of them.
  void forward(NodeId node, int micro_batch);
  /// Rows of its pieces' gradients become one row of the micro-batch.
  BufferId combine_gradients(NodeId node, int micro_batch, const std::vector<BufferId>& rows);

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
  std::vector<BufferId> piece_rows(NodeId node, int micro_batch);
  BufferId combine(NodeId node, Pass pass, const std::vector<BufferId>& rows);
  BufferId combine_over(NodeId node, Pass pass, int channel, const Members& members,
                        const std::vector<BufferId>& rows);
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
