#pragma once
// What one rank sees of a placed graph: its own pieces, what its consumers need, and the moves that
// begin or end here, by micro-batch. Made for one rank at a time, in time and memory that grow with
// the pieces of the graph, not with the moves of all ranks.

#include <span>
#include <vector>

#include "tessera/lower/edges.h"

namespace tessera {

class RankView {
 public:
  RankView(const PlacedGraph& placed, int rank);

  int rank() const { return rank_; }
  /// Whether the stage runs here.
  bool on_stage(int stage) const { return stage == stage_; }
  /// Indices of the non-empty pieces of a value here.
  const std::vector<int>& pieces(ValueId value, int micro_batch) const {
    return values_[value].pieces[micro_batch];
  }
  /// Whether the value's stage runs here for this micro-batch, even with an empty part.
  bool owns(ValueId value, int micro_batch) const;
  bool runs(NodeId node, int micro_batch) const;
  /// Whether a consumer of the group runs here for this micro-batch, even with an empty part.
  bool reads(ValueId value, int group, int micro_batch) const {
    return values_[value].groups[group].reads[micro_batch];
  }
  /// Indices of the group's needs here that are not empty.
  const std::vector<int>& needs(ValueId value, int group, int micro_batch) const {
    return values_[value].groups[group].needs[micro_batch];
  }
  /// Moves of the group that begin or end here, in plan order.
  std::span<const Move> moves(ValueId value, int group, int micro_batch) const {
    return values_[value].groups[group].moves_of(micro_batch);
  }
  /// Those of the halo of the value's gradient.
  std::span<const Move> gradient_moves(ValueId value, int micro_batch) const {
    return values_[value].gradient_halo.moves_of(micro_batch);
  }

 private:
  struct Group {
    std::vector<bool> reads;              // per micro-batch
    std::vector<std::vector<int>> needs;  // per micro-batch
    std::vector<Move> moves;
    std::vector<size_t> first_move;  // per micro-batch, and the end

    std::span<const Move> moves_of(int micro_batch) const;
  };
  struct Value {
    std::vector<std::vector<int>> pieces;  // per micro-batch
    std::vector<Group> groups;
    Group gradient_halo;
  };
  Group view_of(const std::vector<Need>& needs, const Layout& layout) const;

  const PlacedGraph& placed_;
  int rank_;
  int stage_;  // where this rank is
  std::vector<Value> values_;
};

}  // namespace tessera
