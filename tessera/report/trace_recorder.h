#pragma once
// What one rank really did in a step: its tasks, the time blocked in each Finish, and, where asked
// for, each kernel. Recording an event is a push_back of plain numbers; names are made afterwards.
//
// One thread drives one recorder. The graph outlives it.
//
// Example, on every rank:
//   TraceRecorder recorder(lowering.graph(), rank, TraceRecorder::Detail::kKernels);
//   barrier(transport, everyone);  // clocks of several machines agree no better than this
//   recorder.start();
//   for (const Instruction& each : program.instructions)
//     traced(&recorder, each, [&] { execute(each); });
//   recorder.finish();
//   recorder.events();

#include <chrono>
#include <vector>

#include "tessera/lower/program.h"
#include "tessera/report/trace.h"

namespace tessera {

class TraceRecorder {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Detail {
    kTasks,    // tasks and waits
    kKernels,  // and every kernel, load and update
  };

  TraceRecorder(const Graph& graph, int rank, Detail detail);

  /// Now is time zero; what was recorded before is forgotten.
  void start();
  /// Closes the open task and opens the next.
  void enter(const Enter& enter, Clock::time_point now);
  /// Blocked in a Finish; `what` is a literal.
  void wait(Clock::time_point begin, Clock::time_point end, const char* what);
  void kernel(const Run& run, Clock::time_point begin, Clock::time_point end);
  /// Closes the open task.
  void finish();

  /// Whether record() would do anything with it: the others are not worth two looks at the clock.
  bool watches(const Instruction& instruction) const;
  /// An instruction that ran from `begin` to `end`.
  void record(const Instruction& instruction, Clock::time_point begin, Clock::time_point end);

  /// Everything from start() to finish(), an event before those that lie inside it.
  std::vector<TraceEvent> events() const;

 private:
  struct TaskRecord {
    Enter enter;
    Clock::time_point begin;
    Clock::time_point end;
  };
  struct InnerRecord {
    const char* category;
    const char* what;  // of a kernel: its phase
    NodeId node;       // -1: not a kernel
    Clock::time_point begin;
    Clock::time_point end;
  };
  void close_task(Clock::time_point now);
  double microseconds(Clock::time_point time) const;

  const Graph& graph_;
  int rank_;
  Detail detail_;
  Clock::time_point zero_;
  bool task_open_ = false;
  std::vector<TaskRecord> tasks_;
  std::vector<InnerRecord> inner_;
};

/// Runs `body`, which executes `instruction`, and records it where there is a recorder.
template <class Body>
void traced(TraceRecorder* recorder, const Instruction& instruction, const Body& body) {
  if (recorder == nullptr || !recorder->watches(instruction)) return body();
  const TraceRecorder::Clock::time_point begin = TraceRecorder::Clock::now();
  body();
  recorder->record(instruction, begin, TraceRecorder::Clock::now());
}

}  // namespace tessera
