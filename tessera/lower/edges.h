#pragma once
// Decides, for every value, in which buffers its pieces and its consumers' inputs lie.
//
// Margins belong to the edge (value, consumer), not to the value. A consumer with a window reads a
// buffer that covers what it needs: its box with the halo and, outside the image, zeros. Where the
// producer can write into the interior of such a buffer, that buffer is the *home* of the piece and
// nothing is copied but the halo:
//
//     home of piece p, read by a 3x3 convolution      +---------------+
//     (h: halo from neighbours, 0: outside the image) | 0 0 0 0 0 0 0 |
//                                                     | h . . . . . h |  . interior, written by
//                                                     | h . . . . . h |    the producer
//                                                     | h h h h h h h |
//                                                     +---------------+
//
// Consumers that read the same boxes form a group and share its buffers; a second group is a
// counted copy. Consumers that take strided views and need no halo read the interior of the home
// directly.

#include <vector>

#include "tessera/geometry/transfer.h"
#include "tessera/lower/options.h"
#include "tessera/plan/placement.h"

namespace tessera {

/// Consumers of one value that read the same boxes. Vectors run over the pieces of the consumers'
/// outputs.
struct EdgeGroup {
  InputAccess access = InputAccess::kDense;
  std::vector<Need> needs;         // an empty box where the consumer's piece is empty
  std::vector<bool> covers_piece;  // the need holds the whole piece of the same index and rank
  std::vector<bool> in_place;      // the need is the home of that piece
  std::vector<Move> moves;         // from owners to needs
  int num_uses = 0;
  int channel = 0;  // of the transfer; its adjoint has channel + 1

  bool moves_in_place(const Move& move) const {
    return move.source_piece == move.need && in_place[move.need];
  }
};

/// How one reading of a value is served. Vectors run over the pieces of the consumer's output.
struct UsePlan {
  int group = -1;                // -1: directly from homes
  std::vector<Box> needed;       // what the operator asked for
  std::vector<int> home_pieces;  // direct readings: the piece whose home holds it
};

struct ValuePlan {
  Layout layout;
  std::vector<Box> home_boxes;  // per piece; holds the piece's box
  std::vector<EdgeGroup> groups;
  std::vector<UsePlan> uses;  // as Value::uses
};

/// A graph with every value placed.
struct PlacedGraph {
  Graph graph;
  std::vector<ValuePlan> values;

  const UsePlan& use(NodeId node, int input) const;
  const Layout& output_layout(NodeId node) const { return values[graph.node(node).output].layout; }
  int num_channels = 0;  // used by transfers
};

PlacedGraph place(Graph graph, const Plan& plan);

}  // namespace tessera
