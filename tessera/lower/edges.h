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
//
// A value that a stage makes and another reads is not a special case: its consumers sit on other
// ranks. Pieces and needs are listed micro-batch by micro-batch, and data never moves from one to
// another.

#include <span>
#include <vector>

#include "tessera/geometry/transfer.h"
#include "tessera/lower/chunks.h"
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
  std::vector<Move> moves;         // from owners to needs, in the order of needs
  std::vector<size_t> first_move;  // per micro-batch, and the end
  int channel = 0;  // of the first micro-batch's transfer; its adjoint has channel + 1

  std::span<const Move> moves_of(int micro_batch) const {
    return std::span(moves).subspan(first_move[micro_batch],
                                    first_move[micro_batch + 1] - first_move[micro_batch]);
  }
  int channel_of(int micro_batch) const { return channel + 2 * micro_batch; }
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
  int stage = 0;  // whose ranks own it
  int chunk = 0;  // that makes it; for an input, that reads it first
  Layout layout;
  std::vector<Box> home_boxes;  // per piece; holds the piece's box
  std::vector<EdgeGroup> groups;
  std::vector<UsePlan> uses;  // as Value::uses
};

/// A graph with every value placed.
struct PlacedGraph {
  Graph graph;
  Plan plan;
  std::vector<int> stage_of_node;
  std::vector<Chunk> chunks;
  std::vector<ValuePlan> values;

  const UsePlan& use(NodeId node, int input) const;
  const Layout& output_layout(NodeId node) const { return values[graph.node(node).output].layout; }
  int num_channels = 0;  // used by transfers

  int num_micro_batches() const { return static_cast<int>(plan.micro_batches); }
  /// The ranks that run a node for a micro-batch, ascending.
  Members ranks_of_node(NodeId node, int micro_batch) const {
    return plan.stage_ranks(plan.place_of_stage(stage_of_node[node], micro_batch));
  }
  /// ... for any micro-batch.
  Members all_ranks_of_node(NodeId node) const;
};

PlacedGraph place(Graph graph, const Plan& plan);

}  // namespace tessera
