#pragma once
// Who owns which part of a value: the global shape and a list of pieces that are disjoint and cover
// it. A rank may own no piece, one or many; a piece may be empty (a deep level can have fewer
// pixels than there are workers) and then keeps its place in the list, so that piece i of one value
// and piece i of its neighbour in the graph sit on the same rank.
//
// A layout never changes, so copies share one list: many values of a network are cut alike.

#include <memory>
#include <string>
#include <vector>

#include "tessera/geometry/box.h"

namespace tessera {

struct Piece {
  Box box;
  int rank = 0;
  bool operator==(const Piece&) const = default;
};

class Layout {
 public:
  Layout() = default;
  /// Throws InvalidInput unless the non-empty pieces are disjoint, inside the shape, and cover it,
  /// every piece has the shape's axes (at most Box::kMaxAxes) and a rank >= 0. A shape with a zero
  /// size has no elements and is covered by empty pieces, or none.
  Layout(Shape global_shape, std::vector<Piece> pieces);

  const Shape& global_shape() const { return parts_->global_shape; }
  const std::vector<Piece>& pieces() const { return parts_->pieces; }
  const Piece& piece(int index) const { return parts_->pieces[index]; }
  int num_pieces() const { return static_cast<int>(parts_->pieces.size()); }
  /// Indices of the non-empty pieces of a rank, in list order.
  const std::vector<int>& pieces_of(int rank) const;
  /// Indices of the non-empty pieces that meet `box`, ascending; `box` may leave the shape. By
  /// look-up in a grid of the pieces' boundaries, not by a scan over all pieces (except for lists
  /// so irregular that the grid would be larger than they are).
  std::vector<int> pieces_meeting(const Box& box) const;
  bool operator==(const Layout& other) const;

 private:
  struct Parts {
    Shape global_shape;
    std::vector<Piece> pieces;
    std::vector<std::vector<int>> pieces_of_rank;
    // Boundaries per axis, sorted, and the piece that owns each cell between them (row major). Both
    // empty where the list is too irregular for a table.
    std::vector<std::vector<int64_t>> cuts;
    std::vector<int> cell_owner;
  };
  static void build_index(Parts* parts);
  static const std::shared_ptr<const Parts>& no_parts();

  std::shared_ptr<const Parts> parts_ = no_parts();
};

std::string to_string(const Layout& layout);

}  // namespace tessera
