#pragma once
// Writes the program of one rank: forward in node order, backward in reverse, with transfers
// started as soon as their data is there and finished right before they are first needed, so that
// whatever lies between hides them. Buffers come and go later (memory.h).

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tessera/lower/buckets.h"
#include "tessera/lower/edges.h"
#include "tessera/lower/keep.h"
#include "tessera/lower/program.h"

namespace tessera {

class Emitter {
 public:
  Emitter(const PlacedGraph& placed, const BackwardValues& backward,
          const std::vector<BucketPlan>& buckets, const LowerOptions& options, int rank,
          int num_ranks);

  /// The program without Alloc and Free.
  Program emit();

 private:
  /// Buffers of a value, or of its gradient, on this rank; -1: none.
  struct Instance {
    std::vector<BufferId> homes;                // per piece
    std::vector<std::vector<BufferId>> groups;  // per edge group and need
  };
  /// One direction of an edge group's transfer, as this rank sees it.
  struct Exchange {
    std::vector<Message> sends;
    std::vector<Message> receives;
    bool idle() const { return sends.empty() && receives.empty(); }
    std::vector<BufferId> strips() const;
  };
  using EdgeKey = std::pair<ValueId, int>;  // value, group
  using PieceKey = std::pair<NodeId, int>;  // node, piece of its output
  enum class Direction { kForward, kBackward };

  // emitter.cpp: the frame of a step
  BufferId add_buffer(std::string name, BufferKind kind, const Box& box, const Box& interior,
                      ElementType element = ElementType::kReal);
  template <class T>
  void append(T instruction) {
    program_.instructions.emplace_back(std::move(instruction));
  }
  void fill(BufferId buffer);
  void set_up_loss();
  void set_up_buckets();
  void start_ready_buckets(NodeId node);
  void finish_step();
  bool reduces_buckets() const { return options_.reduce_gradients && program_.num_ranks > 1; }
  void keep_results();
  Instance empty_instance(ValueId value) const;
  const std::vector<int>& pieces_here(ValueId value) const { return pieces_here_[value]; }
  ElementType element_of(ValueId value) const;

  // emit_transfer.cpp: halo exchanges and their adjoints
  template <class PeerOf, class ViewOf>
  std::vector<Message> route(const EdgeGroup& group, PeerOf peer_of, ViewOf view_of) const;
  void add_strips(std::vector<Message>* messages, const std::string& name, ElementType element);
  void start_exchange(ValueId value, int group);
  void finish_exchange(ValueId value, int group);
  std::vector<Message> exchange_receives(ValueId value, int group) const;
  void unpack_again(ValueId value, int group);
  void start_adjoint(ValueId value, int group);
  void finish_adjoint(ValueId value, int group);

  // emit_forward.cpp
  void load_inputs();
  void emit_forward(NodeId node);
  void make_homes(ValueId value);
  void make_groups(ValueId value);
  bool backward_reads(ValueId value, int group) const;
  void fill_outside(BufferId buffer, ValueId value);
  void copy_local_moves(ValueId value, int group);
  void run_forward(NodeId node, Phase phase);
  void recompute(ValueId value);
  View input_view(NodeId node, int input, int piece) const;
  View home_view(ValueId value, int piece) const;

  // emit_statistics.cpp: statistics over all pieces, merged on every rank
  void emit_statistics(NodeId node, Direction direction);
  View statistics_row(NodeId node, int piece, BufferId gathered) const;

  // emit_backward.cpp: what a node does in backward
  void emit_backward(NodeId node);
  void run_input_gradient(NodeId node);
  void run_weight_gradient(NodeId node);
  std::vector<Argument> backward_arguments(NodeId node, int piece) const;
  void make_grad_output_dense(NodeId node);
  View grad_output(NodeId node, int piece) const;
  bool passes_gradient(NodeId node, int input) const;

  // emit_gradient.cpp: how the gradient of a value grows from its readings
  void prepare_gradients();
  View gradient_target(NodeId node, int input, int piece);
  void add_contribution(NodeId node, int input, int piece, const View& target);
  void reading_done(NodeId node, int input);
  void complete_group(ValueId value, int group);
  bool contributes(ValueId value, int group, const Move& move) const;
  void complete_gradient(ValueId value);
  BufferId gradient_home(ValueId value, int piece);

  const PlacedGraph& placed_;
  const Graph& graph_;
  const BackwardValues& backward_;
  const std::vector<BucketPlan>& buckets_;
  const LowerOptions& options_;
  const int rank_;
  Program program_;

  std::vector<std::vector<int>> pieces_here_;  // per value: this rank's non-empty pieces
  std::vector<Instance> instances_;            // per value; replaced when it is recomputed
  std::vector<bool> recomputed_;
  std::map<EdgeKey, Exchange> exchanges_;
  std::map<EdgeKey, bool> exchange_finished_;
  std::map<PieceKey, BufferId> saved_;
  std::map<NodeId, BufferId> merged_statistics_;
  std::map<NodeId, BufferId> gathered_grad_statistics_;
  std::map<NodeId, BufferId> merged_grad_statistics_;

  std::vector<Instance> gradients_;          // per value
  std::map<EdgeKey, int> pending_readings_;  // of a group, until its adjoint can start
  std::map<EdgeKey, std::vector<bool>>
      contributes_;                       // per need: some reading has a gradient for it
  std::map<EdgeKey, Exchange> adjoints_;  // started
  std::map<ValueId, std::vector<int>> started_adjoints_;  // groups, in order
  std::map<PieceKey, BufferId> dense_grad_outputs_;
};

}  // namespace tessera
