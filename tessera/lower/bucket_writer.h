#pragma once
// Gradients of parameters on one rank: buckets, their reduction over the ranks that hold them, and
// the optimiser's update at the end; and weights that are computed from others, at the beginning.
//
// A bucket is reduced from when the last micro-batch has added to it, round by round between the
// kernels that follow (reduction_writer.h).

#include <map>
#include <vector>

#include "tessera/lower/reduction_writer.h"

namespace tessera {

class BucketWriter {
 public:
  explicit BucketWriter(ProgramWriter* writer) : writer_(*writer), reductions_(writer) {}

  /// Computes derived weights, makes the loss and, where the step trains, the buckets.
  void set_up();
  /// The part of a bucket that holds a parameter's gradient; new scratch for a frozen one, beside a
  /// trainable one of the same kernel.
  View gradient(ParameterId parameter);
  /// The node's weight gradients have been added, on the ranks that run it, for one micro-batch.
  void contributed(const Node& node);
  /// Kernels of the node's backward have run on the ranks that run it: time passes for reductions.
  void input_gradient_ran(NodeId node, int micro_batch);
  void weight_gradient_ran(NodeId node, int micro_batch);
  /// Whether backward of the node adds to the step's numbers.
  bool measures_gradient(const Node& node) const;
  /// A loss, or a measurement, has been added for one micro-batch. All ranks want to know the sum.
  void loss_added();
  /// Ends all reductions, and updates.
  void finish_step();

 private:
  bool is_here(ParameterId parameter) const;
  bool is_reduced(size_t bucket) const;
  void derive(int derivation);
  void derive_gradients(int derivation);
  void make_bucket(size_t bucket);
  void begin_bucket(size_t bucket);
  void start_bucket(size_t bucket);
  void update();
  std::vector<BufferId> bucket_buffers() const;

  ProgramWriter& writer_;
  ReductionWriter reductions_;
  std::map<ParameterId, View> gradient_of_;
  std::map<ParameterId, View> gradient_of_derived_;
  std::map<ParameterId, int> derivation_of_;
  std::map<int, int> pending_uses_;  // per derivation: contributions of all ranks
  std::vector<BufferId> buffers_;    // per bucket; -1: not held here
  std::vector<int> pending_;         // per bucket: contributions of all ranks
  std::vector<bool> begun_;          // per bucket: it is zero, or has what was added since
  std::vector<bool> started_;        // per bucket
  int pending_losses_ = 0;
};

}  // namespace tessera
