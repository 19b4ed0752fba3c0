#pragma once
// Writes the program of one rank, task by task: forward in node order, backward in reverse, with
// transfers started as soon as their data is there and finished right before they are first needed,
// so that whatever lies between hides them. Buffers come and go later (memory.h).
//
// The emitters of all ranks walk all tasks of the schedule in the same order, also those that run
// on other stages: the moment at which a value is sent is the moment at which its receiver posts
// the receive, so the messages of every pair of ranks are in the same order at both ends, and the
// schedule's virtual time is one run in which no waits form a cycle.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tessera/lower/buckets.h"
#include "tessera/lower/early.h"
#include "tessera/lower/edges.h"
#include "tessera/lower/keep.h"
#include "tessera/lower/program.h"

namespace tessera {

/// What the emitters of all ranks share.
struct EmitContext {
  const PlacedGraph& placed;
  const BackwardValues& backward;
  const std::vector<Members>& holders;  // per parameter
  const std::vector<BucketPlan>& buckets;
  const std::vector<int>& bucket_of_parameter;  // -1: none
  const EarlyPart& early;
  const LowerOptions& options;
  std::vector<double> busy_until;  // per rank, in the schedule's time: the end of its last task
};

class Emitter {
 public:
  Emitter(const EmitContext& context, int rank);

  /// In this order: set_up, every task of the schedule, finish.
  void set_up();
  void emit(const ScheduledTask& task);
  /// The program without Alloc and Free.
  Program finish();

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
    std::vector<const Move*> whole;  // per receive: its only move, where it has one
    bool idle() const { return sends.empty() && receives.empty(); }
    std::vector<BufferId> strips() const;
  };
  /// A transfer in which this rank only sends: it is finished once the receiver has posted.
  struct PendingSend {
    int channel = -1;
    std::vector<BufferId> strips;
    double received = 0;
  };
  struct EdgeKey {
    ValueId value = -1;
    int group = 0;
    int micro_batch = 0;
    auto operator<=>(const EdgeKey&) const = default;
  };
  using PieceKey = std::pair<NodeId, int>;  // node, piece of its output
  using NodeKey = std::pair<NodeId, int>;   // node, micro-batch
  using ValueKey = std::pair<ValueId, int>;
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
  void count_contributions();
  void contributed(const Node& node);
  void start_bucket(size_t bucket);
  void start_reduce(int channel, BufferId buffer, const Members& members);
  void start_loss_reduction();
  void finish_sends(double now);
  void finish_step();
  bool reduces(size_t bucket) const;
  void keep_results();
  void forget_instance(ValueId value);
  Instance empty_instance(ValueId value) const;
  const std::vector<int>& pieces_here(ValueId value) const {
    return pieces_here_[micro_batch_][value];
  }
  /// Whether the value's stage runs here for this micro-batch, even with an empty part.
  bool owns(ValueId value) const;
  bool runs(NodeId node) const { return owns(graph_.node(node).output); }
  bool reads(ValueId value, int group) const;
  EdgeKey edge(ValueId value, int group) const { return {value, group, micro_batch_}; }
  NodeKey now(NodeId node) const { return {node, micro_batch_}; }
  ElementType element_of(ValueId value) const;

  // emit_transfer.cpp: exchanges between ranks and their adjoints
  template <class PeerOf, class ViewOf>
  std::vector<Message> route(const EdgeGroup& group, PeerOf peer_of, ViewOf view_of,
                             std::vector<const Move*>* whole = nullptr) const;
  void add_strips(std::vector<Message>* messages, const std::string& name, ElementType element,
                  bool sending);
  void start(int channel, const Exchange& exchange, bool finished_here);
  void start_exchange(ValueId value, int group);
  void finish_exchange(ValueId value, int group);
  std::vector<Message> exchange_receives(ValueId value, int group,
                                         std::vector<const Move*>* whole = nullptr) const;
  void unpack(ValueId value, int group);
  bool take_over_strip(ValueId value, int group, const Exchange& exchange, size_t message);
  void start_adjoint(ValueId value, int group);
  void finish_adjoint(ValueId value, int group);

  // emit_forward.cpp
  void load_input(ValueId value);
  void emit_forward(NodeId node);
  void make_homes(ValueId value);
  void make_groups(ValueId value);
  void make_group_buffers(ValueId value, int group);
  bool backward_reads(ValueId value, int group) const;
  void fill_outside(BufferId buffer, ValueId value);
  void copy_local_moves(ValueId value, int group);
  void run_forward(NodeId node, Phase phase);
  void recompute(ValueId value);
  View input_view(NodeId node, int input, int piece) const;
  View home_view(ValueId value, int piece) const;

  // emit_statistics.cpp: statistics over pieces, merged on every rank that has some
  struct Rows;
  Rows statistics_rows(NodeId node, bool whole_batch) const;
  BufferId add_gathered(NodeId node, const Rows& rows, Direction direction);
  void run_piece_statistics(NodeId node, const Rows& rows, BufferId gathered, Direction direction);
  void gather(int channel, const Rows& rows, BufferId gathered);
  BufferId merge(NodeId node, const Rows& rows, BufferId gathered, Direction direction);
  void emit_statistics(NodeId node, Direction direction);
  View statistics_row(int piece, const Rows& rows, BufferId gathered) const;
  void emit_early_statistics(NodeId node);
  void add_loss_statistics(NodeId node);
  void merge_loss_statistics(NodeId node);
  void forward_loss(NodeId node);
  void keep_for_buffers(NodeId node, BufferId gathered);
  bool updates_buffers_late(NodeId node) const;
  void update_buffers(NodeId node);
  void give_rows_to_holders(NodeId node, BufferId all,
                            const std::vector<Range>& rows_of_micro_batch);

  // emit_backward.cpp: what a node does in backward
  void emit_backward(NodeId node, bool with_weights);
  void emit_weight_gradient(NodeId node);
  void run_input_gradient(NodeId node);
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

  const EmitContext& context_;
  const PlacedGraph& placed_;
  const Graph& graph_;
  const BackwardValues& backward_;
  const LowerOptions& options_;
  const int rank_;
  int micro_batch_ = 0;  // that is being emitted
  Program program_;

  std::vector<bool> on_stage_;                              // per stage: this rank is one of it
  std::vector<std::vector<std::vector<int>>> pieces_here_;  // per micro-batch and value
  std::vector<Instance> instances_;                         // per value
  std::map<ValueKey, bool> recomputed_;
  std::map<EdgeKey, Exchange> exchanges_;
  std::map<EdgeKey, bool> exchange_finished_;
  std::vector<PendingSend> pending_sends_;
  std::map<PieceKey, BufferId> saved_;
  std::map<NodeKey, BufferId> merged_statistics_;
  std::map<PieceKey, View> grad_statistics_rows_;
  std::map<NodeKey, BufferId> merged_grad_statistics_;
  std::map<NodeId, BufferId> loss_statistics_;                        // of the whole batch
  std::map<NodeId, int> losses_collected_;                            // micro-batches
  std::map<NodeId, std::map<int, BufferId>> statistics_for_buffers_;  // by micro-batch
  std::vector<int> users_of_buffer_;                                  // nodes, per parameter

  std::vector<Instance> gradients_;          // per value
  std::map<EdgeKey, int> pending_readings_;  // of a group, until its adjoint can start
  /// Per value, group and need: whether some reading has a gradient for it.
  std::map<std::pair<ValueId, int>, std::vector<bool>> contributes_;
  std::map<EdgeKey, Exchange> adjoints_;                   // started
  std::map<ValueKey, std::vector<int>> started_adjoints_;  // groups, in order
  std::map<PieceKey, BufferId> dense_grad_outputs_;

  std::vector<BufferId> bucket_buffers_;    // per bucket; -1: not held here
  std::vector<int> pending_contributions_;  // per bucket, of all ranks
  std::vector<bool> bucket_started_;
  std::vector<FinishReduce> started_reductions_;
  int pending_losses_ = 0;
};

}  // namespace tessera
