// What must hold of a schedule for any pipeline: nothing forgotten, nothing too early, never stuck.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <tuple>
#include <utility>

#include "tests/unit/lower/schedule_cases.h"

namespace tessera::schedule_property_test {
namespace {

using Key = std::tuple<TaskKind, int, int>;

Key key(TaskKind kind, int chunk, int micro_batch) { return {kind, chunk, micro_batch}; }

std::vector<TaskKind> kinds_of_tasks(const Pipeline& pipeline, ScheduleKind kind) {
  if (!pipeline.backward) return {TaskKind::kForward};
  if (!splits_backward(kind)) return {TaskKind::kForward, TaskKind::kBackward};
  return {TaskKind::kForward, TaskKind::kBackward, TaskKind::kWeight};
}

/// Every task once, on its stage, after the tasks that it waits for, one at a time on a stage.
void expect_a_possible_run(const Tasks& tasks, const Pipeline& pipeline, ScheduleKind kind) {
  std::map<Key, size_t> position;
  std::vector<double> free_at(pipeline.num_stages, 0);
  for (size_t i = 0; i < tasks.size(); ++i) {
    const auto& [task, stage, begin, end] = tasks[i];
    EXPECT_TRUE(position.emplace(key(task.kind, task.chunk, task.micro_batch), i).second);
    EXPECT_EQ(stage, stage_for(pipeline.stage_of_chunk[task.chunk], task.micro_batch,
                               pipeline.num_stages, kind));
    EXPECT_LE(free_at[stage], begin);
    free_at[stage] = end;
    EXPECT_LE(tasks[i > 0 ? i - 1 : 0].begin, begin);
  }
  const std::vector<TaskKind> kinds = kinds_of_tasks(pipeline, kind);
  ASSERT_EQ(tasks.size(), kinds.size() * pipeline.stage_of_chunk.size() * pipeline.micro_batches);
  const auto expect_order = [&](const Key& before, const Key& after) {
    const size_t first = position.at(before), second = position.at(after);
    EXPECT_LT(first, second);
    EXPECT_LE(tasks[first].end, tasks[second].begin);
  };
  for (int c = 0; c < static_cast<int>(pipeline.stage_of_chunk.size()); ++c)
    for (int m = 0; m < pipeline.micro_batches; ++m) {
      for (size_t k = 1; k < kinds.size(); ++k)
        expect_order(key(kinds[k - 1], c, m), key(kinds[k], c, m));
      for (int before : pipeline.chunks_before[c]) {
        expect_order(key(TaskKind::kForward, before, m), key(TaskKind::kForward, c, m));
        if (pipeline.backward)
          expect_order(key(TaskKind::kBackward, c, m), key(TaskKind::kBackward, before, m));
      }
    }
}

/// Chunks on the longest way to an end, as 1F1B limits them; by another way than the schedule's.
int chunks_to_end(const Pipeline& pipeline, int chunk) {
  int longest = 0;
  for (int c = chunk + 1; c < static_cast<int>(pipeline.chunks_before.size()); ++c)
    if (std::ranges::count(pipeline.chunks_before[c], chunk))
      longest = std::max(longest, chunks_to_end(pipeline, c));
  return longest + 1;
}

/// PipeDream-flush: `ahead` forwards, then a backward and a forward in turn.
std::vector<Task> flush_order(int chunk, int ahead, int micro_batches) {
  std::vector<Task> order;
  int forward = 0, backward = 0;
  while (forward < std::min(ahead, micro_batches))
    order.push_back({TaskKind::kForward, chunk, forward++});
  while (backward < micro_batches) {
    order.push_back({TaskKind::kBackward, chunk, backward++});
    if (forward < micro_batches) order.push_back({TaskKind::kForward, chunk, forward++});
  }
  return order;
}

void expect_flush_order(const Tasks& tasks, const Pipeline& pipeline) {
  for (int c = 0; c < static_cast<int>(pipeline.stage_of_chunk.size()); ++c) {
    std::vector<Task> order;
    for (const ScheduledTask& scheduled : tasks)
      if (scheduled.task.chunk == c && scheduled.task.kind != TaskKind::kWeight)
        order.push_back(scheduled.task);
    EXPECT_TRUE(order == flush_order(c, chunks_to_end(pipeline, c), pipeline.micro_batches))
        << "chunk " << c;
  }
}

/// No stage holds more than the fullest stage of 1F1B may.
void expect_memory_of_1f1b(const Tasks& tasks, const Pipeline& pipeline) {
  std::vector<int> allowed(pipeline.num_stages, 0);
  for (int c = 0; c < static_cast<int>(pipeline.stage_of_chunk.size()); ++c)
    allowed[pipeline.stage_of_chunk[c]] +=
        std::min(chunks_to_end(pipeline, c), pipeline.micro_batches);
  EXPECT_LE(std::ranges::max(most_in_flight(tasks, pipeline.num_stages)),
            std::ranges::max(allowed));
}

void expect_gpipe_order(const Tasks& tasks, const Pipeline& pipeline) {
  std::vector<bool> going_back(pipeline.num_stages, false);
  std::map<int, int> backward_before;  // per chunk
  for (const auto& [task, stage, begin, end] : tasks) {
    if (task.kind == TaskKind::kForward) {
      EXPECT_FALSE(going_back[stage]);
      continue;
    }
    going_back[stage] = true;
    const int expected = backward_before.contains(task.chunk) ? backward_before[task.chunk] - 1
                                                              : pipeline.micro_batches - 1;
    EXPECT_EQ(task.micro_batch, expected);
    backward_before[task.chunk] = task.micro_batch;
  }
}

void expect_one_after_the_other(const Tasks& tasks) {
  for (size_t i = 1; i < tasks.size(); ++i) {
    EXPECT_LE(tasks[i - 1].end, tasks[i].begin);
    EXPECT_LE(tasks[i - 1].task.micro_batch, tasks[i].task.micro_batch);
  }
}

/// A micro-batch comes to a stage when the one before it has left.
void expect_micro_batches_in_turn(const Tasks& tasks, const Pipeline& pipeline) {
  std::vector<int> here(pipeline.num_stages, 0);
  for (const ScheduledTask& scheduled : tasks) {
    EXPECT_LE(here[scheduled.stage], scheduled.task.micro_batch);
    here[scheduled.stage] = scheduled.task.micro_batch;
  }
}

void expect_what_the_kind_promises(const Tasks& tasks, const Pipeline& pipeline,
                                   ScheduleKind kind) {
  if (kind == kSequential) expect_one_after_the_other(tasks);
  if (!pipeline.backward) return;
  if (kind == kGpipe) expect_gpipe_order(tasks, pipeline);
  if (kind == kOneForwardOneBackward || kind == kZeroBubble) {
    expect_flush_order(tasks, pipeline);
    expect_memory_of_1f1b(tasks, pipeline);
  }
  if (kind == kGems) expect_micro_batches_in_turn(tasks, pipeline);
}

class Random {
 public:
  explicit Random(int seed) : engine_(seed) {}
  int between(int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine_); }
  bool one_in(int n) { return between(1, n) == 1; }

 private:
  std::mt19937 engine_;
};

/// Sometimes no time at all, sometimes much.
std::vector<double> random_costs(Random& random, size_t num_chunks) {
  std::vector<double> costs;
  for (size_t c = 0; c < num_chunks; ++c)
    costs.push_back(random.one_in(3) ? 0 : random.between(1, 30) * 0.1);
  return costs;
}

void add_random_costs(Random& random, Pipeline& pipeline) {
  const size_t num_chunks = pipeline.stage_of_chunk.size();
  if (random.one_in(2)) pipeline.forward_cost = random_costs(random, num_chunks);
  if (random.one_in(2)) pipeline.backward_cost = random_costs(random, num_chunks);
  if (random.one_in(2)) pipeline.weight_cost = random_costs(random, num_chunks);
}

/// Any graph of chunks, anywhere: parts that are not connected, stages without a chunk.
Pipeline random_pipeline(Random& random) {
  Pipeline pipeline;
  pipeline.num_stages = random.between(1, 6);
  pipeline.micro_batches = random.between(1, 9);
  pipeline.backward = !random.one_in(8);
  const int num_chunks = random.between(0, 11);
  const int sparsity = random.between(1, 5);
  for (int c = 0; c < num_chunks; ++c) {
    pipeline.stage_of_chunk.push_back(random.between(0, pipeline.num_stages - 1));
    pipeline.chunks_before.emplace_back();
    for (int before = 0; before < c; ++before)
      if (random.one_in(sparsity)) pipeline.chunks_before.back().push_back(before);
  }
  add_random_costs(random, pipeline);
  return pipeline;
}

TEST(ScheduleProperty, AnyGraphOnAnyStages) {
  for (int seed = 0; seed < 3000; ++seed) {
    Random random(seed);
    const Pipeline pipeline = random_pipeline(random);
    for (ScheduleKind kind : kAll) {
      if (kind == kInterleaved && pipeline.backward) continue;
      SCOPED_TRACE(fmt::format("seed {}, {}", seed, to_string(kind)));
      const Tasks tasks = schedule_tasks(pipeline, kind);
      expect_a_possible_run(tasks, pipeline, kind);
      expect_what_the_kind_promises(tasks, pipeline, kind);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST(ScheduleProperty, InterleavedWithSkipsAndCosts) {
  for (int seed = 0; seed < 500; ++seed) {
    Random random(seed);
    const int num_stages = random.between(1, 5);
    Pipeline pipeline = Pipeline::chain(num_stages, num_stages * random.between(1, 4),
                                        num_stages * random.between(1, 3));
    for (int c = 2; c < static_cast<int>(pipeline.stage_of_chunk.size()); ++c)
      if (random.one_in(2))
        pipeline.chunks_before[c].insert(pipeline.chunks_before[c].begin(),
                                         random.between(0, c - 2));
    add_random_costs(random, pipeline);
    SCOPED_TRACE(fmt::format("seed {}", seed));
    expect_a_possible_run(schedule_tasks(pipeline, kInterleaved), pipeline, kInterleaved);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(ScheduleProperty, NothingTakesTime) {
  for (ScheduleKind kind : kAll) {
    Pipeline pipeline = Pipeline::chain(4, 8, 4);
    pipeline.forward_cost = pipeline.backward_cost = pipeline.weight_cost = std::vector(8, 0.0);
    const Tasks tasks = schedule_tasks(pipeline, kind);
    expect_a_possible_run(tasks, pipeline, kind);
    expect_what_the_kind_promises(tasks, pipeline, kind);
    EXPECT_EQ(bubble_fraction(tasks, 4), 0);
  }
}

TEST(ScheduleProperty, UNetsOfAllSizes) {
  for (int p = 1; p <= 6; ++p)
    for (int m = 1; m <= 8; ++m)
      for (ScheduleKind kind : kAll) {
        if (kind == kInterleaved) continue;
        SCOPED_TRACE(fmt::format("{}, {} stages, {} micro-batches", to_string(kind), p, m));
        const Pipeline pipeline = u_net(p, m);
        const Tasks tasks = schedule_tasks(pipeline, kind);
        expect_a_possible_run(tasks, pipeline, kind);
        EXPECT_TRUE(std::ranges::is_sorted(tasks, {}, [](const ScheduledTask& scheduled) {
          return std::pair(scheduled.begin, scheduled.stage);
        }));
        expect_what_the_kind_promises(tasks, pipeline, kind);
      }
}

TEST(ScheduleProperty, OneChunkPerStageInterleavesAs1f1b) {
  const Pipeline pipeline = Pipeline::chain(4, 4, 7);
  EXPECT_EQ(drawn(pipeline, kInterleaved), drawn(pipeline, kOneForwardOneBackward));
}

TEST(ScheduleProperty, ManyStagesAndMicroBatches) {
  for (ScheduleKind kind : kAll)
    EXPECT_EQ(schedule_tasks(Pipeline::chain(64, 128, 256), kind).size(),
              128u * 256u * (kind == kZeroBubble ? 3 : 2));
}

}  // namespace
}  // namespace tessera::schedule_property_test
