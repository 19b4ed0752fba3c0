// The recorder keeps what an interpreter does, in order and nested.

#include <gtest/gtest.h>

#include <thread>

#include "tessera/report/trace_recorder.h"
#include "tests/unit/report/nesting.h"
#include "tests/unit/simulate/hand_made.h"

namespace tessera::recorder_test {
namespace {

using namespace hand_made;
using Detail = TraceRecorder::Detail;

/// Two tasks, and in them a kernel, waits of each kind, and instructions that are not recorded.
Program example() {
  return program(
      1, 2,
      {forward(0), Load{}, kernel(Phase::kForward, 10), send(1, 0), finish(1), backward(0),
       kernel(Phase::kInputGradient, 10), Fill{}, FinishReduce{}, finish_step(), Update{}});
}

std::vector<TraceEvent> recorded(const Program& program, Detail detail) {
  const Graph graph = graph_of_one_kernel();
  TraceRecorder recorder(graph, program.rank, detail);
  recorder.start();
  size_t executed = 0;
  for (const Instruction& instruction : program.instructions)
    traced(&recorder, instruction, [&] {
      ++executed;
      std::this_thread::sleep_for(std::chrono::microseconds(10));
    });
  recorder.finish();
  EXPECT_EQ(executed, program.instructions.size());
  return recorder.events();
}

std::vector<std::string> names_of(const std::vector<TraceEvent>& events) {
  std::vector<std::string> names;
  for (const TraceEvent& event : events) names.push_back(event.name);
  return names;
}

TEST(Recorder, KeepsTasksAndWaits) {
  const std::vector<TraceEvent> events = recorded(example(), Detail::kTasks);
  EXPECT_EQ(names_of(events),
            (std::vector<std::string>{"forward 0", "backward 0", "finish", "wait for a transfer",
                                      "wait for a reduction"}));
  expect_nested(events);
  for (const TraceEvent& event : events) {
    EXPECT_EQ(event.rank, 1);
    EXPECT_GE(event.begin_us, 0) << event.name;
    EXPECT_GT(event.duration_us, 0) << event.name;
  }
  EXPECT_DOUBLE_EQ(events[0].begin_us + events[0].duration_us, events[1].begin_us);
}

TEST(Recorder, KeepsKernelsWhereAskedTo) {
  const std::vector<TraceEvent> events = recorded(example(), Detail::kKernels);
  EXPECT_EQ(names_of(events), (std::vector<std::string>{"forward 0", "backward 0", "finish", "load",
                                                        "relu1", "wait for a transfer", "relu1",
                                                        "wait for a reduction", "update"}));
  EXPECT_EQ(events[6].category, "kernel");
  EXPECT_EQ(events[6].args.at("phase"), "input gradient");
  expect_nested(events);
}

TEST(Recorder, ForgetsTheLastStep) {
  const Graph graph;
  TraceRecorder recorder(graph, 0, Detail::kTasks);
  recorder.enter(forward(0), TraceRecorder::Clock::now());
  recorder.start();
  recorder.enter(forward(1), TraceRecorder::Clock::now());
  recorder.finish();
  EXPECT_EQ(names_of(recorder.events()), std::vector<std::string>{"forward 1"});
}

TEST(Recorder, CostsNothingWhereThereIsNone) {
  int executed = 0;
  traced(nullptr, Instruction(forward(0)), [&] { ++executed; });
  EXPECT_EQ(executed, 1);
}

}  // namespace
}  // namespace tessera::recorder_test
