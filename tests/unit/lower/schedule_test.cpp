// Schedules: drawn as their papers draw them, the papers' formulas, and what must hold for any
// pipeline: nothing forgotten, nothing too early, never stuck.

#include "tessera/lower/schedule.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <tuple>
#include <utility>

#include "tessera/base/error.h"

namespace tessera {
namespace {

using enum ScheduleKind;
constexpr ScheduleKind kAll[] = {kSequential,  kGpipe,      kOneForwardOneBackward,
                                 kInterleaved, kZeroBubble, kGems};
using Tasks = std::vector<ScheduledTask>;

/// Begins with a new line, as the drawings below do.
std::string drawn(const Pipeline& pipeline, ScheduleKind kind) {
  return "\n" + draw_schedule(schedule_tasks(pipeline, kind), pipeline.num_stages);
}

double end_of(const Tasks& tasks) {
  double end = 0;
  for (const ScheduledTask& scheduled : tasks) end = std::max(end, scheduled.end);
  return end;
}

/// Chunks down the stages and up again: those of a U-Net's encoder and decoder, with its skips.
Pipeline u_net(int num_stages, int micro_batches) {
  const int num_chunks = 2 * num_stages - 1;
  Pipeline pipeline = Pipeline::chain(num_stages, num_chunks, micro_batches);
  for (int chunk = num_stages; chunk < num_chunks; ++chunk) {
    const int mirror = num_chunks - 1 - chunk;
    pipeline.stage_of_chunk[chunk] = mirror;
    if (mirror != chunk - 1)
      pipeline.chunks_before[chunk].insert(pipeline.chunks_before[chunk].begin(), mirror);
  }
  return pipeline;
}

// ---- Drawings -----------------------------------------------------------------------------------

TEST(ScheduleDrawing, Sequential) {
  EXPECT_EQ(drawn(Pipeline::chain(3, 3, 2), kSequential), R"(
0 | F0  .  .  .  .  .  . B0 B0 F1  .  .  .  .  .  . B1 B1
1 |  . F0  .  .  . B0 B0  .  .  . F1  .  .  . B1 B1  .  .
2 |  .  . F0 B0 B0  .  .  .  .  .  . F1 B1 B1  .  .  .  .
)");
}

TEST(ScheduleDrawing, Gpipe) {
  EXPECT_EQ(drawn(Pipeline::chain(4, 4, 4), kGpipe), R"(
0 | F0 F1 F2 F3  .  .  .  .  .  .  .  .  . B3 B3 B2 B2 B1 B1 B0 B0
1 |  . F0 F1 F2 F3  .  .  .  .  .  . B3 B3 B2 B2 B1 B1 B0 B0  .  .
2 |  .  . F0 F1 F2 F3  .  .  . B3 B3 B2 B2 B1 B1 B0 B0  .  .  .  .
3 |  .  .  . F0 F1 F2 F3 B3 B3 B2 B2 B1 B1 B0 B0  .  .  .  .  .  .
)");
}

TEST(ScheduleDrawing, OneForwardOneBackward) {
  EXPECT_EQ(drawn(Pipeline::chain(4, 4, 8), kOneForwardOneBackward), R"(
0 | F0 F1 F2 F3  .  .  .  .  .  . B0 B0 F4 B1 B1 F5 B2 B2 F6 B3 B3 F7 B4 B4  . B5 B5  . B6 B6  . B7 B7
1 |  . F0 F1 F2  .  .  .  . B0 B0 F3 B1 B1 F4 B2 B2 F5 B3 B3 F6 B4 B4 F7 B5 B5  . B6 B6  . B7 B7  .  .
2 |  .  . F0 F1  .  . B0 B0 F2 B1 B1 F3 B2 B2 F4 B3 B3 F5 B4 B4 F6 B5 B5 F7 B6 B6  . B7 B7  .  .  .  .
3 |  .  .  . F0 B0 B0 F1 B1 B1 F2 B2 B2 F3 B3 B3 F4 B4 B4 F5 B5 B5 F6 B6 B6 F7 B7 B7  .  .  .  .  .  .
)");
}

// Stage s has 2 (p - s - 1) + (v - 1) p forwards ahead; a small letter is the second chunk.
TEST(ScheduleDrawing, Interleaved) {
  EXPECT_EQ(drawn(Pipeline::chain(4, 8, 8), kInterleaved), R"(
0 | F0 F1 F2 F3 f0 f1 f2 f3 F4 F5 F6  .  .  . b0 b0 F7 b1 b1  . f4 b2 b2 f5 b3 b3 f6 B0 B0 f7 B1 B1 B2 B2  . B3 B3  . b4 b4  . b5 b5  . b6 b6  . b7 b7 B4 B4 B5 B5 B6 B6 B7 B7
1 |  . F0 F1 F2 F3 f0 f1 f2 f3 F4  .  . b0 b0 F5 b1 b1 F6 b2 b2 F7 b3 b3 f4 B0 B0 f5 B1 B1 f6 B2 B2 f7 B3 B3  . b4 b4  . b5 b5  . b6 b6  . b7 b7 B4 B4 B5 B5 B6 B6 B7 B7  .  .
2 |  .  . F0 F1 F2 F3 f0 f1 f2  . b0 b0 f3 b1 b1 F4 b2 b2 F5 b3 b3 F6 B0 B0 F7 B1 B1 f4 B2 B2 f5 B3 B3 f6 b4 b4 f7 b5 b5  . b6 b6  . b7 b7 B4 B4 B5 B5 B6 B6 B7 B7  .  .  .  .
3 |  .  .  . F0 F1 F2 F3 f0 b0 b0 f1 b1 b1 f2 b2 b2 f3 b3 b3 F4 B0 B0 F5 B1 B1 F6 B2 B2 F7 B3 B3 f4 b4 b4 f5 b5 b5 f6 b6 b6 f7 b7 b7 B4 B4 B5 B5 B6 B6 B7 B7  .  .  .  .  .  .
)");
}

// ZB-H1: stage s puts its weight gradients off by s micro-batches.
TEST(ScheduleDrawing, ZeroBubble) {
  EXPECT_EQ(drawn(Pipeline::chain(4, 4, 8), kZeroBubble), R"(
0 | F0 F1 F2 F3  .  .  . B0 W0 F4 B1 W1 F5 B2 W2 F6 B3 W3 F7 B4 W4 B5 W5 B6 W6 B7 W7
1 |  . F0 F1 F2  .  . B0 F3 B1 W0 F4 B2 W1 F5 B3 W2 F6 B4 W3 F7 B5 W4 B6 W5 B7 W6 W7
2 |  .  . F0 F1  . B0 F2 B1 F3 B2 W0 F4 B3 W1 F5 B4 W2 F6 B5 W3 F7 B6 W4 B7 W5 W6 W7
3 |  .  .  . F0 B0 F1 B1 F2 B2 F3 B3 W0 F4 B4 W1 F5 B5 W2 F6 B6 W3 F7 B7 W4 W5 W6 W7
)");
}

// Micro-batch 1 enters at the last stage, behind the backward of micro-batch 0.
TEST(ScheduleDrawing, Gems) {
  EXPECT_EQ(drawn(Pipeline::chain(4, 4, 2), kGems), R"(
0 | F0  .  .  .  .  .  .  .  .  . B0 B0 F1 B1 B1  .  .  .  .  .  .
1 |  . F0  .  .  .  .  .  . B0 B0 F1  .  .  .  . B1 B1  .  .  .  .
2 |  .  . F0  .  .  . B0 B0 F1  .  .  .  .  .  .  .  . B1 B1  .  .
3 |  .  .  . F0 B0 B0 F1  .  .  .  .  .  .  .  .  .  .  .  . B1 B1
)");
}

TEST(ScheduleDrawing, UNet) {
  EXPECT_EQ(drawn(u_net(2, 2), kOneForwardOneBackward), R"(
0 | F0 F1 f0 b0 b0 f1 b1 b1 B0 B0 B1 B1
1 |  . F0 F1  .  . B0 B0  . B1 B1  .  .
)");
}

TEST(ScheduleDrawing, ForwardsOnly) {
  Pipeline pipeline = Pipeline::chain(3, 3, 4);
  pipeline.backward = false;
  for (ScheduleKind kind : {kGpipe, kOneForwardOneBackward, kInterleaved, kZeroBubble})
    EXPECT_EQ(drawn(pipeline, kind), R"(
0 | F0 F1 F2 F3  .  .
1 |  . F0 F1 F2 F3  .
2 |  .  . F0 F1 F2 F3
)") << to_string(kind);
  EXPECT_EQ(drawn(pipeline, kGems), R"(
0 | F0 F2  . F1  . F3
1 |  . F0 F1 F2 F3  .
2 | F1 F3 F0  . F2  .
)");
}

TEST(ScheduleDrawing, ManyMicroBatchesAndChunks) {
  Pipeline pipeline = Pipeline::chain(1, 3, 11);
  pipeline.backward = false;
  EXPECT_EQ(drawn(pipeline, kSequential).substr(0, 44),
            "\n0 |  F00  f00 F00'  F01  f01 F01'  F02  f02");
}

TEST(ScheduleDrawing, ATaskFillsTheCellsWhoseMiddleItRunsIn) {
  Pipeline pipeline = Pipeline::chain(2, 2, 2);
  pipeline.forward_cost = {1.5, 0.25};
  pipeline.backward = false;
  EXPECT_EQ(drawn(pipeline, kGpipe), R"(
0 | F0 F1 F1  .
1 |  . F0  .  .
)");
}

TEST(ScheduleDrawing, NothingToDo) {
  EXPECT_EQ(drawn(Pipeline::chain(2, 0, 3), kOneForwardOneBackward), "\n0 |\n1 |\n");
  EXPECT_EQ(bubble_fraction({}, 2), 0);
}

// ---- Formulas -----------------------------------------------------------------------------------

TEST(ScheduleFormula, GpipeAndOneForwardOneBackward) {
  for (int p = 1; p <= 9; ++p)
    for (int m = 1; m <= 20; ++m) {
      SCOPED_TRACE(fmt::format("{} stages, {} micro-batches", p, m));
      const Pipeline pipeline = Pipeline::chain(p, p, m);
      const Tasks gpipe = schedule_tasks(pipeline, kGpipe);
      const Tasks alternating = schedule_tasks(pipeline, kOneForwardOneBackward);
      EXPECT_NEAR(bubble_fraction(gpipe, p), (p - 1.0) / (m + p - 1), 1e-12);
      EXPECT_NEAR(bubble_fraction(alternating, p), (p - 1.0) / (m + p - 1), 1e-12);
      EXPECT_EQ(most_in_flight(gpipe, p), std::vector<int>(p, m));
      for (int s = 0; s < p; ++s)
        EXPECT_EQ(most_in_flight(alternating, p)[s], std::min(p - s, m)) << "stage " << s;
    }
}

TEST(ScheduleFormula, Interleaved) {
  for (int p = 1; p <= 6; ++p)
    for (int v = 1; v <= 4; ++v)
      for (int m = p; m <= 4 * p; m += p) {
        const Tasks tasks = schedule_tasks(Pipeline::chain(p, p * v, m), kInterleaved);
        EXPECT_NEAR(bubble_fraction(tasks, p), (p - 1.0) / (v * m + p - 1), 1e-12)
            << p << " stages, " << v << " chunks each, " << m << " micro-batches";
      }
}

TEST(ScheduleFormula, ZeroBubble) {
  for (int p = 1; p <= 12; ++p)
    for (int m = p; m <= 3 * p + 2; ++m) {
      SCOPED_TRACE(fmt::format("{} stages, {} micro-batches", p, m));
      const Tasks tasks = schedule_tasks(Pipeline::chain(p, p, m), kZeroBubble);
      EXPECT_EQ(end_of(tasks), 3 * m + (p - 1));  // 1F1B: 3 m + 3 (p - 1)
      EXPECT_EQ(most_in_flight(tasks, p), std::vector<int>(p, p));
    }
}

TEST(ScheduleFormula, Gems) {
  for (int p = 1; p <= 8; ++p)
    for (int m = 1; m <= 7; ++m) {
      SCOPED_TRACE(fmt::format("{} stages, {} micro-batches", p, m));
      const Tasks tasks = schedule_tasks(Pipeline::chain(p, p, m), kGems);
      EXPECT_EQ(end_of(tasks), 3 * p + (m - 1) * (2 * p + 1));  // a forward is hidden, but one task
      EXPECT_EQ(most_in_flight(tasks, p), std::vector<int>(p, 1));
    }
  EXPECT_EQ(drawn(Pipeline::chain(5, 5, 1), kGems), drawn(Pipeline::chain(5, 5, 1), kSequential));
}

TEST(ScheduleFormula, Sequential) {
  const Tasks tasks = schedule_tasks(Pipeline::chain(4, 8, 3), kSequential);
  EXPECT_EQ(end_of(tasks), 3 * 8 * 3);
  EXPECT_NEAR(bubble_fraction(tasks, 4), 0.75, 1e-12);
}

TEST(ScheduleFormula, CostsSetTheTimes) {
  Pipeline pipeline = Pipeline::chain(1, 1, 1);
  pipeline.forward_cost = {3};
  pipeline.backward_cost = {5};
  pipeline.weight_cost = {7};
  const Tasks whole = schedule_tasks(pipeline, kOneForwardOneBackward);
  ASSERT_EQ(whole.size(), 2u);
  EXPECT_EQ(whole[1].begin, 3);
  EXPECT_EQ(whole[1].end, 15);
  const Tasks split = schedule_tasks(pipeline, kZeroBubble);
  ASSERT_EQ(split.size(), 3u);
  EXPECT_EQ(split[1].end, 8);
  EXPECT_EQ(split[2].task.kind, TaskKind::kWeight);
  EXPECT_EQ(split[2].end, 15);
}

// ---- Any pipeline -------------------------------------------------------------------------------

using Key = std::tuple<TaskKind, int, int>;

Key key(TaskKind kind, int chunk, int micro_batch) { return {kind, chunk, micro_batch}; }

std::vector<TaskKind> kinds_of_tasks(const Pipeline& pipeline, ScheduleKind kind) {
  if (!pipeline.backward) return {TaskKind::kForward};
  if (!splits_backward(kind)) return {TaskKind::kForward, TaskKind::kBackward};
  return {TaskKind::kForward, TaskKind::kBackward, TaskKind::kWeight};
}

/// Every task once, on its stage, behind the tasks that it waits for, one at a time on a stage.
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

// ---- Refusals -----------------------------------------------------------------------------------

std::string refusal(const Pipeline& pipeline, ScheduleKind kind) {
  try {
    schedule_tasks(pipeline, kind);
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

TEST(ScheduleRefusal, InterleavedNeedsAFittingPipeline) {
  EXPECT_EQ(refusal(Pipeline::chain(4, 8, 6), kInterleaved),
            "[schedule interleaved] 6 micro-batches on 4 stages; give a number of micro-batches "
            "that 4 divides, or use 1f1b");
  EXPECT_EQ(refusal(Pipeline::chain(4, 6, 8), kInterleaved),
            "[schedule interleaved] 6 parts of the network on 4 stages; cut it into a number of "
            "parts that 4 divides, or use 1f1b");
  EXPECT_EQ(refusal(u_net(3, 3), kInterleaved),
            "[schedule interleaved] part 3 of the network runs on stage 1, not on 0: parts must go "
            "round the 3 stages in turn; assign them so, or use 1f1b");
}

TEST(ScheduleRefusal, ImpossiblePipelines) {
  EXPECT_EQ(refusal(Pipeline::chain(2, 2, 0), kGpipe),
            "[schedule] 0 micro-batches; give at least 1");
  Pipeline no_stages = Pipeline::chain(2, 2, 1);
  no_stages.num_stages = 0;
  EXPECT_EQ(refusal(no_stages, kGpipe), "[schedule] 0 stages; give at least 1");
}

TEST(ScheduleRefusal, BrokenPipelinesAreOurBug) {
  Pipeline pipeline = Pipeline::chain(2, 2, 1);
  pipeline.chunks_before[0] = {1};
  EXPECT_THROW(schedule_tasks(pipeline, kGpipe), InternalError);
  pipeline = Pipeline::chain(2, 2, 1);
  pipeline.stage_of_chunk[1] = 2;
  EXPECT_THROW(schedule_tasks(pipeline, kGpipe), InternalError);
  pipeline = Pipeline::chain(2, 2, 1);
  pipeline.forward_cost = {1};
  EXPECT_THROW(schedule_tasks(pipeline, kGpipe), InternalError);
  pipeline.forward_cost = {1, -1};
  EXPECT_THROW(schedule_tasks(pipeline, kGpipe), InternalError);
}

}  // namespace
}  // namespace tessera
