#pragma once
// The order in which the stages of a pipeline work, as data: no graph, no ranks, no buffers. A
// *chunk* is a part of the network that runs without waiting for another stage in between; a stage
// may hold several (interleaved schedules, or a level of a U-Net's encoder and its mirror in the
// decoder). A *task* is one chunk's forward, backward or weight gradient on one micro-batch.
//
// A schedule is made by walking virtual time: whenever a stage is free it takes, of the tasks whose
// inputs are there and which its policy allows, the one that the policy prefers. The walk is one
// possible run, so programs that communicate in its order can never wait for each other in a cycle.
//
// Example: schedule_tasks(Pipeline::chain(2, 2, 3), ScheduleKind::kOneForwardOneBackward), drawn; a
// backward takes two units of time:
//   0 | F0 F1  .  . B0 B0 F2 B1 B1  . B2 B2
//   1 |  . F0 B0 B0 F1 B1 B1 F2 B2 B2  .  .

#include <string>
#include <vector>

#include "tessera/plan/schedule_kind.h"

namespace tessera {

enum class TaskKind {
  kForward,
  kBackward,  // without the weight gradients where the schedule has tasks for them
  kWeight,    // weight gradients
};

/// "forward", "backward", "weight".
const char* to_string(TaskKind kind);

struct Task {
  TaskKind kind = TaskKind::kForward;
  int chunk = 0;
  int micro_batch = 0;
  bool operator==(const Task&) const = default;
};

/// A task with its place in virtual time.
struct ScheduledTask {
  Task task;
  int stage = 0;  // where it runs
  double begin = 0;
  double end = 0;
};

/// What there is to order.
struct Pipeline {
  int num_stages = 1;
  int micro_batches = 1;
  std::vector<int> stage_of_chunk;              // for micro-batches that are not mirrored
  std::vector<std::vector<int>> chunks_before;  // per chunk: those whose values it reads,
                                                // ascending; always smaller than the chunk itself
  bool backward = true;                         // false: forwards only
  // Per chunk; empty: 1 for a forward, 2 for a backward, which a split halves.
  std::vector<double> forward_cost;
  std::vector<double> backward_cost;  // input gradients alone
  std::vector<double> weight_cost;

  /// A chain of chunks: chunk i reads chunk i - 1 and runs on stage i % num_stages.
  static Pipeline chain(int num_stages, int num_chunks, int micro_batches);
};

/// All tasks of one step, ordered by their start in virtual time, then by stage; a task always
/// comes after those that it waits for, even where they take no time. Any pipeline will do, except
/// for kInterleaved with backwards: chunks must go round the stages in turn, the same number on
/// each, and the number of stages must divide that of the micro-batches where a stage has more than
/// one chunk. Throws InvalidInput where the schedule does not fit the pipeline, with the remedy.
std::vector<ScheduledTask> schedule_tasks(const Pipeline& pipeline, ScheduleKind kind);

/// Whether the schedule has weight gradients as tasks of their own.
bool splits_backward(ScheduleKind kind);

/// The fraction of (stages x time) that is idle.
double bubble_fraction(const std::vector<ScheduledTask>& tasks, int num_stages);

/// Most micro-batches that a stage holds at once, counted per chunk: from the start of the forward
/// to the end of the chunk's last task on it (backward, or weight gradients where they are apart).
std::vector<int> most_in_flight(const std::vector<ScheduledTask>& tasks, int num_stages);

/// One line per stage, as papers draw it: a cell per unit of time with the task that runs in its
/// middle: F, B or W and the micro-batch, or a dot for an idle stage. A stage's second chunk of a
/// micro-batch has small letters, its third and fourth are F0' and f0'.
std::string draw_schedule(const std::vector<ScheduledTask>& tasks, int num_stages);

}  // namespace tessera
