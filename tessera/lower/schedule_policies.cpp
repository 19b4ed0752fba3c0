#include "tessera/lower/schedule_policies.h"

#include <algorithm>

#include "tessera/base/error.h"

namespace tessera {
namespace {

constexpr TaskKind kForward = TaskKind::kForward;
constexpr TaskKind kBackward = TaskKind::kBackward;
constexpr TaskKind kWeight = TaskKind::kWeight;

using Chunks = std::vector<int>;

/// Per stage: its chunks for micro-batches that are not mirrored, ascending.
std::vector<Chunks> chunks_of_stages(const Pipeline& pipeline) {
  std::vector<Chunks> chunks(pipeline.num_stages);
  for (size_t chunk = 0; chunk < pipeline.stage_of_chunk.size(); ++chunk)
    chunks[pipeline.stage_of_chunk[chunk]].push_back(static_cast<int>(chunk));
  return chunks;
}

/// Only one task at a time in the whole pipeline. No cycle: the data's order is kept.
void add_sequential(TaskGraph& graph) {
  std::vector<int> all;
  for (int m = 0; m < graph.num_micro_batches(); ++m) {
    for (int c = 0; c < graph.num_chunks(); ++c) all.push_back(graph.id(kForward, c, m));
    if (!graph.has(kBackward)) continue;
    for (int c = graph.num_chunks() - 1; c >= 0; --c) all.push_back(graph.id(kBackward, c, m));
  }
  graph.add_sequence(all);
}

/// A stage's backwards wait for all its forwards; the last micro-batch goes back first. No cycle:
/// forwards wait for forwards only, of the same micro-batch or the one before; backwards wait for
/// backwards of the same micro-batch or the one after.
void add_gpipe(TaskGraph& graph, const Pipeline& pipeline) {
  const int last = graph.num_micro_batches() - 1;
  for (int c = 0; c < graph.num_chunks(); ++c)
    for (int m = 0; m < last; ++m) {
      graph.add_order(graph.id(kForward, c, m), graph.id(kForward, c, m + 1));
      graph.add_order(graph.id(kBackward, c, m + 1), graph.id(kBackward, c, m));
    }
  for (const Chunks& chunks : chunks_of_stages(pipeline))
    for (int forward : chunks)
      for (int backward : chunks)
        graph.add_order(graph.id(kForward, forward, last), graph.id(kBackward, backward, last));
}

/// At most limits[c] micro-batches of chunk c between the start of their forward and the end of
/// `last`.
void limit_in_flight(TaskGraph& graph, TaskKind last, const std::vector<int>& limits) {
  for (int c = 0; c < graph.num_chunks(); ++c)
    for (int m = limits[c]; m < graph.num_micro_batches(); ++m)
      graph.add_order(graph.id(last, c, m - limits[c]), graph.id(kForward, c, m));
}

/// limits[c] forwards of chunk c ahead, then a backward and a forward in turn: the order in which
/// Narayanan et al., "Memory-efficient pipeline-parallel DNN training", run a chain of stages. Were
/// backwards taken whenever they are there, many pipelines of uneven costs would end later, few
/// earlier, and ZB-H1 would miss its bound even with even ones.
///
/// No cycle, even with weight gradients under limits as loose or looser: with h chunks on the
/// longest way from a chunk to the end, which is its limit, give
///   its forward of micro-batch m the rank 6m - 3h, its backward 6m + 3h - 4, its weights one more;
/// every task waits for tasks of smaller rank only. A limit that is cut to the number of
/// micro-batches takes orders away, or replaces forwards that are waited for by earlier ones.
void alternate(TaskGraph& graph, const std::vector<int>& limits) {
  limit_in_flight(graph, kBackward, limits);
  const int last = graph.num_micro_batches() - 1;
  for (int c = 0; c < graph.num_chunks(); ++c)
    for (int m = 0; m <= last; ++m)
      graph.add_order(graph.id(kForward, c, std::min(m + limits[c] - 1, last)),
                      graph.id(kBackward, c, m));
}

/// As many as keep a chunk busy until the first of them comes back: one for each chunk on the
/// longest way to the end, itself included. In a chain of p stages that is p - s.
std::vector<int> one_forward_one_backward_limits(const Pipeline& pipeline) {
  std::vector<int> limits(pipeline.stage_of_chunk.size(), 1);
  for (int c = static_cast<int>(limits.size()) - 1; c >= 0; --c)
    for (int before : pipeline.chunks_before[c])
      limits[before] = std::max(limits[before], limits[c] + 1);
  for (int& limit : limits) limit = std::min(limit, pipeline.micro_batches);
  return limits;
}

/// Qi et al., "Zero bubble pipeline parallelism", schedule ZB-H1: weight gradients are put off, but
/// a stage keeps no more micro-batches than the stage of 1F1B that keeps most. What a stage has
/// left to that is shared among its chunks. In a chain of p stages every stage gets p.
std::vector<int> zero_bubble_limits(const Pipeline& pipeline, std::vector<int> limits) {
  const std::vector<Chunks> chunks_of_stage = chunks_of_stages(pipeline);
  std::vector<int> kept(pipeline.num_stages, 0);
  for (size_t c = 0; c < limits.size(); ++c) kept[pipeline.stage_of_chunk[c]] += limits[c];
  const int most = *std::ranges::max_element(kept);
  for (size_t c = 0; c < limits.size(); ++c) {
    const int stage = pipeline.stage_of_chunk[c];
    limits[c] += (most - kept[stage]) / static_cast<int>(chunks_of_stage[stage].size());
  }
  return limits;
}

void check_interleaved(const Pipeline& pipeline) {
  const int num_stages = pipeline.num_stages;
  const int num_chunks = static_cast<int>(pipeline.stage_of_chunk.size());
  for (int c = 0; c < num_chunks; ++c)
    if (pipeline.stage_of_chunk[c] != c % num_stages)
      throw_error<InvalidInput>(
          "[schedule interleaved] part {} of the network runs on stage {}, not on {}: parts must "
          "go round the {} stages in turn; assign them so, or use 1f1b",
          c, pipeline.stage_of_chunk[c], c % num_stages, num_stages);
  if (num_chunks % num_stages != 0)
    throw_error<InvalidInput>(
        "[schedule interleaved] {} parts of the network on {} stages; cut it into a number of "
        "parts that {} divides, or use 1f1b",
        num_chunks, num_stages, num_stages);
  if (num_chunks > num_stages && pipeline.micro_batches % num_stages != 0)
    throw_error<InvalidInput>(
        "[schedule interleaved] {} micro-batches on {} stages; give a number of micro-batches that "
        "{} divides, or use 1f1b",
        pipeline.micro_batches, num_stages, num_stages);
}

/// A stage's tasks in groups of as many micro-batches as there are stages; the groups in turn; in
/// each all micro-batches of a chunk, then of the next.
std::vector<int> in_groups(const TaskGraph& graph, TaskKind kind, const Chunks& chunks,
                           int group_size) {
  std::vector<int> ids;
  for (int begin = 0; begin < graph.num_micro_batches(); begin += group_size) {
    const int end = std::min(begin + group_size, graph.num_micro_batches());
    for (int c : chunks)
      for (int m = begin; m < end; ++m) ids.push_back(graph.id(kind, c, m));
  }
  return ids;
}

/// Some forwards ahead, then a forward and a backward in turn, then the backwards that are left.
std::vector<int> in_turn(const std::vector<int>& forwards, const std::vector<int>& backwards,
                         size_t num_ahead) {
  std::vector<int> ids;
  for (size_t k = 0; k < std::max(forwards.size(), backwards.size() + num_ahead); ++k) {
    if (k < forwards.size()) ids.push_back(forwards[k]);
    if (k >= num_ahead && k - num_ahead < backwards.size()) ids.push_back(backwards[k - num_ahead]);
  }
  return ids;
}

/// Narayanan et al., "Efficient large-scale language model training on GPU clusters using
/// Megatron-LM": a fixed order on each stage. No cycle: it has none for a chain of chunks, and
/// whatever a chunk reads is before it in that chain.
void add_interleaved(TaskGraph& graph, const Pipeline& pipeline) {
  const std::vector<Chunks> chunks_of_stage = chunks_of_stages(pipeline);
  const int num_stages = pipeline.num_stages;
  for (int stage = 0; stage < num_stages; ++stage) {
    Chunks chunks = chunks_of_stage[stage];
    const std::vector<int> forwards = in_groups(graph, kForward, chunks, num_stages);
    const size_t num_ahead =
        2 * (num_stages - 1 - stage) + (static_cast<int>(chunks.size()) - 1) * num_stages;
    std::ranges::reverse(chunks);
    const std::vector<int> backwards = in_groups(graph, kBackward, chunks, num_stages);
    graph.add_sequence(in_turn(forwards, backwards, std::min(num_ahead, forwards.size())));
  }
}

/// Jain et al., "GEMS: GPU-enabled memory-aware model-parallelism system for distributed DNN
/// training": a micro-batch enters a stage when the one before it has left it for good. No cycle: a
/// task waits for its own micro-batch, as the data demand, or an earlier one.
void add_gems(TaskGraph& graph, const Pipeline& pipeline) {
  const std::vector<Chunks> chunks_of_stage = chunks_of_stages(pipeline);
  for (int place = 0; place < pipeline.num_stages; ++place) {
    std::vector<int> leaving;  // the backwards here of the micro-batch that was here before
    for (int m = 0; m < graph.num_micro_batches(); ++m) {
      const int stage = stage_for(place, m, pipeline.num_stages, ScheduleKind::kGems);
      const Chunks& chunks = chunks_of_stage[stage];
      if (chunks.empty()) continue;  // a mirrored stage may hold nothing
      for (int backward : leaving)
        for (int c : chunks) graph.add_order(backward, graph.id(kForward, c, m));
      leaving.clear();
      for (int c : chunks) leaving.push_back(graph.id(kBackward, c, m));
    }
  }
}

std::vector<double> or_ones(const std::vector<double>& costs, size_t num_chunks) {
  return costs.empty() ? std::vector<double>(num_chunks, 1.0) : costs;
}

}  // namespace

TaskGraph::TaskGraph(const Pipeline& pipeline, ScheduleKind kind)
    : schedule_(kind),
      num_stages_(pipeline.num_stages),
      num_kinds_(!pipeline.backward      ? 1
                 : splits_backward(kind) ? 3
                                         : 2),
      num_chunks_(static_cast<int>(pipeline.stage_of_chunk.size())),
      num_micro_batches_(pipeline.micro_batches),
      stage_of_chunk_(pipeline.stage_of_chunk),
      cost_{or_ones(pipeline.forward_cost, num_chunks_),
            or_ones(pipeline.backward_cost, num_chunks_),
            or_ones(pipeline.weight_cost, num_chunks_)},
      after_(num_tasks()),
      num_before_(num_tasks(), 0) {
  if (!splits_backward(kind))
    for (int c = 0; c < num_chunks_; ++c) cost_[1][c] += cost_[2][c];
  for (int c = 0; c < num_chunks_; ++c)
    for (int m = 0; m < num_micro_batches_; ++m) {
      for (int before : pipeline.chunks_before[c]) {
        add_order(id(kForward, before, m), id(kForward, c, m));
        if (has(kBackward)) add_order(id(kBackward, c, m), id(kBackward, before, m));
      }
      if (has(kBackward)) add_order(id(kForward, c, m), id(kBackward, c, m));
      if (has(kWeight)) add_order(id(kBackward, c, m), id(kWeight, c, m));
    }
}

int TaskGraph::id(TaskKind kind, int chunk, int micro_batch) const {
  return (static_cast<int>(kind) * num_chunks_ + chunk) * num_micro_batches_ + micro_batch;
}

Task TaskGraph::task(int id) const {
  const int row = id / num_micro_batches_;
  return {static_cast<TaskKind>(row / num_chunks_), row % num_chunks_, id % num_micro_batches_};
}

int TaskGraph::stage(int id) const {
  const Task of = task(id);
  return stage_for(stage_of_chunk_[of.chunk], of.micro_batch, num_stages_, schedule_);
}

double TaskGraph::cost(int id) const {
  const Task of = task(id);
  return cost_[static_cast<int>(of.kind)][of.chunk];
}

Preference TaskGraph::preference(int id) const {
  const Task of = task(id);
  if (of.kind == kForward) return {1, of.micro_batch, of.chunk};
  if (of.kind == kWeight) return {2, of.micro_batch, -of.chunk};
  const bool last_first = schedule_ == ScheduleKind::kGpipe;
  return {0, last_first ? -of.micro_batch : of.micro_batch, -of.chunk};
}

void TaskGraph::add_order(int before, int after) {
  after_[before].push_back(after);
  ++num_before_[after];
}

void TaskGraph::add_sequence(const std::vector<int>& ids) {
  for (size_t k = 1; k < ids.size(); ++k) add_order(ids[k - 1], ids[k]);
}

void add_policy(TaskGraph& graph, const Pipeline& pipeline, ScheduleKind kind) {
  const bool sequential = kind == ScheduleKind::kSequential;
  if (!pipeline.backward && !sequential) return;  // nothing is kept: as early as the data allow
  const std::vector<int> limits = one_forward_one_backward_limits(pipeline);
  switch (kind) {
    case ScheduleKind::kSequential:
      return add_sequential(graph);
    case ScheduleKind::kGpipe:
      return add_gpipe(graph, pipeline);
    case ScheduleKind::kOneForwardOneBackward:
      return alternate(graph, limits);
    case ScheduleKind::kInterleaved:
      check_interleaved(pipeline);
      if (graph.num_chunks() > pipeline.num_stages) return add_interleaved(graph, pipeline);
      return alternate(graph, limits);
    case ScheduleKind::kZeroBubble:
      alternate(graph, limits);
      return limit_in_flight(graph, kWeight, zero_bubble_limits(pipeline, limits));
    case ScheduleKind::kGems:
      return add_gems(graph, pipeline);
  }
}

}  // namespace tessera
