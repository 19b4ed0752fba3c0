#pragma once
// Values on one rank: their homes, the buffers of their readers, the exchanges that fill these, and
// the kernels of forward, first and again in backward.

#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "tessera/lower/exchange_writer.h"

namespace tessera {

/// Buffers of a value, or of its gradient, on one rank.
struct Instance {
  std::map<int, BufferId> homes;                // by piece
  std::vector<std::map<int, BufferId>> groups;  // by need, for each edge group

  explicit Instance(const ValuePlan& plan) : groups(plan.groups.size()) {}
};

class ValueWriter {
 public:
  ValueWriter(ProgramWriter* writer, ExchangeWriter* exchanges);

  /// Reads the pieces of a graph input and gives them to their readers.
  void load(ValueId value, int micro_batch);
  /// Waits for what the inputs of a node lack.
  void finish_exchanges(NodeId node, int micro_batch);
  void finish_exchange(ValueId value, int group, int micro_batch);
  /// Runs the node's forward on its pieces here and gives its output to its readers.
  void forward(NodeId node, int micro_batch);
  /// The same in two steps: runs some channels, and then the others and gives the output away.
  void forward_channels(NodeId node, int micro_batch, const Range& channels);
  void forward(NodeId node, int micro_batch, const Range& channels);
  /// Runs forward on whole pieces, and gives nothing to anybody.
  void run_forward(NodeId node, int micro_batch, Phase phase);
  /// Makes a value that was not kept available again, with all that it is computed from.
  void recompute(ValueId value, int micro_batch);

  View home(ValueId value, int piece) const;
  bool has_home(ValueId value, int piece) const { return instances_[value].homes.contains(piece); }
  /// What a piece reads of an input, or a box of the piece.
  View input(NodeId node, int input, int piece) const;
  View input(NodeId node, int input, int piece, const Box& out) const;
  /// What forward of a piece left for backward; -1: nothing.
  BufferId saved(NodeId node, int piece) const;

 private:
  using EdgeKey = std::tuple<ValueId, int, int>;  // value, group, micro-batch

  void make_homes(ValueId value, int micro_batch);
  void run_and_give(NodeId node, int micro_batch, const std::optional<Range>& channels);
  std::vector<Box> run_crossing(NodeId node, int micro_batch, int piece, const Box& box);
  Box part_of_piece(ValueId value, int piece, const std::optional<Range>& channels) const;
  void run_part(NodeId node, Phase phase, int piece, const Box& box);
  int num_groups(ValueId value) const { return static_cast<int>(instances_[value].groups.size()); }
  bool is_given(ValueId value, int group, int micro_batch);
  void start_giving(ValueId value, int micro_batch);
  void copy_to_readers(ValueId value, int micro_batch);
  void make_group_buffers(ValueId value, int group, int micro_batch);
  bool backward_reads(ValueId value, int group) const;
  void fill_outside(BufferId buffer, ValueId value);
  void copy_local_moves(ValueId value, int group, int micro_batch);
  void start_exchange(ValueId value, int group, int micro_batch);
  std::vector<Message> receives(ValueId value, int group, int micro_batch,
                                std::vector<const Move*>* only = nullptr) const;
  void unpack(ValueId value, int group, int micro_batch);
  bool take_over_strip(ValueId value, int group, const Exchange& exchange, size_t message);
  void forget(ValueId value, int micro_batch);

  ProgramWriter& writer_;
  ExchangeWriter& exchanges_;
  std::vector<Instance> instances_;                // per value
  std::map<std::pair<ValueId, int>, bool> again_;  // value, micro-batch: recomputed
  std::map<EdgeKey, Exchange> started_;
  std::map<EdgeKey, bool> finished_;
  std::map<PieceKey, BufferId> saved_;
};

}  // namespace tessera
