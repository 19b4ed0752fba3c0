#pragma once
// Writes the program of one rank, task by task: forward in node order, backward in reverse, with
// transfers started as soon as their data is there and finished right before they are first needed,
// so that whatever lies between hides them. Buffers come and go later (memory.h).
//
// Every rank walks all tasks of the schedule in the same order, also those that run on other
// stages: the moment at which a value is sent is the moment at which its receiver posts the
// receive, so the messages of every pair of ranks are in the same order at both ends, and the
// schedule's virtual time is one run in which no waits form a cycle.

#include <map>

#include "tessera/lower/gradient_writer.h"

namespace tessera {

class Emitter {
 public:
  /// `step` outlives it.
  Emitter(const StepPlan& step, int rank);

  /// The program without Alloc and Free. Once.
  Program emit();

 private:
  void set_up();
  void emit(const ScheduledTask& task);
  void forward(NodeId node, int micro_batch);
  void forward_by_halves(NodeId node, int micro_batch, const Range& first, const Range& second);
  void forward_loss(NodeId node, int micro_batch);
  void finish();
  void keep_results();

  const StepPlan& step_;
  ProgramWriter writer_;
  ExchangeWriter exchanges_;
  ValueWriter values_;
  StatisticsWriter statistics_;
  BucketWriter buckets_;
  GradientWriter gradients_;
  std::map<NodeId, int> losses_collected_;  // micro-batches of a loss that waits for all of them
};

}  // namespace tessera
