#pragma once
// How gradients grow on one rank. The gradient of a value is the sum over its readings. The first
// contribution whose buffer holds the whole piece becomes the gradient's home, margins and all;
// later ones are added to its interior. What a reading contributed outside its own piece travels
// back to the owners by the transfer's adjoint; a reading that has a halo of its own gradient
// contributes nothing there (gradient_halo_writer.h).

#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "tessera/lower/bucket_writer.h"
#include "tessera/lower/gradient_halo_writer.h"
#include "tessera/lower/statistics_writer.h"

namespace tessera {

class GradientWriter {
 public:
  GradientWriter(ProgramWriter* writer, ExchangeWriter* exchanges, ValueWriter* values,
                 StatisticsWriter* statistics, BucketWriter* buckets);

  /// Backward of a node on one micro-batch; `with_weights`: and the gradients of its weights.
  void backward(NodeId node, int micro_batch, bool with_weights);
  void weight_gradient(NodeId node, int micro_batch);
  /// Runs the gradients of weights that backward() has put off: at the end of a task at the latest.
  void run_held_back();
  /// Waits for what other ranks contribute, and returns where each piece's gradient lies.
  std::vector<std::pair<int, View>> complete(ValueId value, int micro_batch);

 private:
  using EdgeKey = std::tuple<ValueId, int, int>;  // value, group, micro-batch

  /// What gives the inputs of a piece their gradients.
  struct InputGradient {
    int piece = 0;
    std::vector<std::pair<int, View>> targets;  // input, where
    std::vector<Box> rest;                      // of the piece, that is left to run
  };

  // What a node does.
  bool hides_weight_gradients(NodeId node, int micro_batch) const;
  void start_statistics(NodeId node, int micro_batch);
  void finish_statistics(NodeId node, int micro_batch);
  void add_statistics(NodeId node, int piece, const Box& box);
  void input_gradient(NodeId node, int micro_batch);
  std::vector<std::pair<int, View>> gradient_targets(NodeId node, int piece);
  void start_halos(const std::vector<ValueId>& values, int micro_batch);
  void run_input_gradient(NodeId node, const InputGradient& work, const Box& box);
  Run begin_run(NodeId node, Phase phase, int piece);
  Run begin_run(NodeId node, Phase phase, int piece, const Box& box);
  void make_grad_output_dense(NodeId node, int micro_batch);
  View grad_output(NodeId node, int piece) const;

  // How a value's gradient grows.
  BufferId* shared_buffer(NodeId node, int input, int piece);
  int home_piece(NodeId node, int input, int piece) const;
  View target(NodeId node, int input, int piece);
  void reading_done(NodeId node, int input, int micro_batch);
  void complete_group(ValueId value, int group, int micro_batch);
  void start_adjoint(ValueId value, int group, int micro_batch);
  void finish_adjoint(ValueId value, int group, int micro_batch);
  std::vector<Message> returning(ValueId value, int group, int micro_batch,
                                 const std::function<View(const Move&)>& view_of,
                                 std::vector<const Move*>* only = nullptr) const;
  bool has_home(ValueId value, int piece) const;
  BufferId home(ValueId value, int piece);

  ProgramWriter& writer_;
  ExchangeWriter& exchanges_;
  ValueWriter& values_;
  StatisticsWriter& statistics_;
  BucketWriter& buckets_;
  GradientHaloWriter halos_;
  std::vector<Instance> instances_;          // per value
  std::map<EdgeKey, int> pending_readings_;  // of a group, until its adjoint can start
  std::map<EdgeKey, Exchange> adjoints_;     // started
  std::map<std::pair<ValueId, int>, std::vector<int>> started_;  // value, micro-batch: groups
  std::map<PieceKey, BufferId> dense_grad_outputs_;
  std::vector<NodeKey> held_back_;                        // whose weight gradients are due
  std::map<PieceKey, std::vector<BufferId>> rows_;        // statistics of a piece's parts
  std::map<PieceKey, std::vector<Box>> late_statistics_;  // parts that wait for other ranks
  std::map<PieceKey, BufferId> row_of_piece_;             // statistics of a piece
  std::map<NodeKey, BufferId> merged_;                    // ... of a micro-batch
};

}  // namespace tessera
