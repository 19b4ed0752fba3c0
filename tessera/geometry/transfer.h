#pragma once
// The one verb that moves data: compiled once from (source layout, needed boxes per rank) into the
// list of boxes that travel. It is the halo exchange (corners included, halos wider than a
// neighbour's part included), the pipeline's send and receive, the scatter of inputs, the gather of
// outputs, and the change from one grid to another. Its adjoint runs the moves backwards and adds.
//
// Example:
//   Transfer halo(layout, needs);          // y = T x: every need filled from the owners
//   for (const Move& move : halo.moves())  // copy move.box from source piece to need

#include <vector>

#include "tessera/geometry/layout.h"

namespace tessera {

/// A box of the value that a rank wants to hold. Parts outside the global shape are not moved (the
/// consumer fills them).
struct Need {
  Box box;
  int rank = 0;
  bool operator==(const Need&) const = default;
};

/// `box` travels from piece `source_piece` on `from` to need `need` on `to`; from == to is a move
/// between a rank's own buffers.
struct Move {
  int from = 0;
  int to = 0;
  int source_piece = 0;
  int need = 0;
  Box box;
  bool operator==(const Move&) const = default;
};

class Transfer {
 public:
  Transfer() = default;
  /// Every element of every need inside the global shape arrives exactly once, from its owner.
  /// Moves are sorted by (need, source_piece): the plan order in which adjoint additions run.
  Transfer(const Layout& source, const std::vector<Need>& needs);
  /// Only the moves that begin or end at `rank`, in the same order: what a rank has to know, in
  /// time and memory that do not grow with the moves of all.
  Transfer(const Layout& source, const std::vector<Need>& needs, int rank);

  const std::vector<Move>& moves() const { return moves_; }
  /// Elements that cross ranks.
  int64_t remote_volume() const;

 private:
  void add_arrivals(const Layout& source, const Need& need, int index);

  std::vector<Move> moves_;
};

/// Transfer(source, needs).remote_volume(), without its moves.
int64_t remote_volume(const Layout& source, const std::vector<Need>& needs);

}  // namespace tessera
