#pragma once
// Decides, for every value, in which buffers its pieces and its consumers' inputs lie. What all
// ranks must decide alike is decided here, for all pieces; who sends what to whom is left to each
// rank (rank_view.h).
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

#include <vector>

#include "tessera/geometry/transfer.h"
#include "tessera/lower/chunks.h"
#include "tessera/plan/plan.h"

namespace tessera {

/// Consumers of one value that read the same boxes. Vectors run over the pieces of the consumers'
/// outputs.
struct EdgeGroup {
  InputAccess access = InputAccess::kDense;
  std::vector<Need> needs;         // an empty box where the consumer's piece is empty
  std::vector<bool> covers_piece;  // the need holds the whole piece of the same index and rank
  std::vector<bool> in_place;      // the need is the home of that piece
  int channel = 0;  // of the first micro-batch's transfer; its adjoint has channel + 1

  int channel_of(int micro_batch) const { return channel + 2 * micro_batch; }
  bool moves_in_place(const Move& move) const {
    return move.source_piece == move.need && in_place[move.need];
  }
};

/// Where an operator computes the gradient of its input from that of its output around it
/// (Op::reached), the gradient of the output travels as the value itself would, and nothing that
/// other ranks computed is added:
///
///     gradient of a piece of a 3x3 convolution's output    +-----------+
///                                                          | h h h h h |  h: other ranks' part
///                                                          | h . . . . |
///                                                          | h . . . . |  .: the piece
///
/// Needs run over the pieces, which are those of the input, too; none: gradients of the input are
/// added at borders.
struct GradientHalo {
  std::vector<Need> needs;
  int channel = 0;  // of the first micro-batch's transfer

  int channel_of(int micro_batch) const { return channel + micro_batch; }
};

struct ValuePlan {
  int stage = 0;  // whose ranks own it
  int chunk = 0;  // that makes it; for an input, that reads it first
  Layout layout;
  int home_group = -1;  // the group whose buffers are homes, where they may be; -1: none
  std::vector<EdgeGroup> groups;
  std::vector<int> group_of_use;  // as Value::uses; -1: served directly from homes
  GradientHalo gradient_halo;     // that the producer's backward reads

  /// Pieces are listed micro-batch by micro-batch, as many for each.
  int micro_batch_of(int piece, int micro_batches) const {
    return piece / (layout.num_pieces() / micro_batches);
  }
  /// The buffer in which a piece lives: its own box, or a need that holds it.
  const Box& home_box(int piece) const {
    const bool margins = home_group >= 0 && groups[home_group].in_place[piece];
    return margins ? groups[home_group].needs[piece].box : layout.piece(piece).box;
  }
};

/// A graph with every value placed.
struct PlacedGraph {
  Graph graph;
  Plan plan;
  std::vector<int> stage_of_node;
  std::vector<Chunk> chunks;
  std::vector<ValuePlan> values;
  int num_channels = 0;  // used by transfers

  /// The group that serves a reading; -1: the homes do.
  int group_of(NodeId node, int input) const;
  /// The box of an input that a piece of the node's output reads.
  Box needed(NodeId node, int input, int piece) const;
  /// For a reading that homes serve: the piece whose home holds what is needed.
  int home_piece(NodeId node, int input, int piece) const;

  const Layout& output_layout(NodeId node) const { return values[graph.node(node).output].layout; }
  int num_micro_batches() const { return static_cast<int>(plan.micro_batches); }
  /// The ranks that run a node for a micro-batch, ascending.
  Members ranks_of_node(NodeId node, int micro_batch) const {
    return plan.stage_ranks(plan.place_of_stage(stage_of_node[node], micro_batch));
  }
  /// The ranks that run it for any micro-batch.
  Members all_ranks_of_node(NodeId node) const;
};

PlacedGraph place(Graph graph, const Plan& plan);

/// Elements of a value that cross ranks in one forward pass.
int64_t exchanged_elements(const ValuePlan& value);

}  // namespace tessera
