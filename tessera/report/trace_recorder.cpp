#include "tessera/report/trace_recorder.h"

#include "tessera/report/task_events.h"

namespace tessera {
namespace {

/// What the instruction waits for; null where it does not wait.
const char* awaited(const Instruction& instruction) {
  if (std::holds_alternative<FinishTransfer>(instruction)) return "wait for a transfer";
  if (std::holds_alternative<AdvanceReduce>(instruction) ||
      std::holds_alternative<FinishReduce>(instruction))
    return "wait for a reduction";
  return nullptr;
}

}  // namespace

TraceRecorder::TraceRecorder(const Graph& graph, int rank, Detail detail)
    : graph_(graph), rank_(rank), detail_(detail), zero_(Clock::now()) {}

void TraceRecorder::start() {
  tasks_.clear();
  inner_.clear();
  task_open_ = false;
  zero_ = Clock::now();
}

void TraceRecorder::enter(const Enter& enter, Clock::time_point now) {
  close_task(now);
  tasks_.push_back({enter, now, now});
  task_open_ = true;
}

void TraceRecorder::wait(Clock::time_point begin, Clock::time_point end, const char* what) {
  inner_.push_back({kWaitCategory, what, -1, begin, end});
}

void TraceRecorder::kernel(const Run& run, Clock::time_point begin, Clock::time_point end) {
  inner_.push_back({"kernel", to_string(run.phase), run.node, begin, end});
}

void TraceRecorder::finish() { close_task(Clock::now()); }

void TraceRecorder::close_task(Clock::time_point now) {
  if (task_open_) tasks_.back().end = now;
  task_open_ = false;
}

bool TraceRecorder::watches(const Instruction& instruction) const {
  if (std::holds_alternative<Enter>(instruction) || awaited(instruction)) return true;
  return detail_ == Detail::kKernels &&
         (std::holds_alternative<Run>(instruction) || std::holds_alternative<Load>(instruction) ||
          std::holds_alternative<Update>(instruction));
}

void TraceRecorder::record(const Instruction& instruction, Clock::time_point begin,
                           Clock::time_point end) {
  if (const auto* task = std::get_if<Enter>(&instruction))
    enter(*task, begin);
  else if (const char* what = awaited(instruction))
    wait(begin, end, what);
  else if (const auto* run = std::get_if<Run>(&instruction))
    kernel(*run, begin, end);
  else if (std::holds_alternative<Load>(instruction))
    inner_.push_back({"data", "load", -1, begin, end});
  else if (std::holds_alternative<Update>(instruction))
    inner_.push_back({"kernel", "update", -1, begin, end});
}

double TraceRecorder::microseconds(Clock::time_point time) const {
  return std::chrono::duration<double, std::micro>(time - zero_).count();
}

std::vector<TraceEvent> TraceRecorder::events() const {
  std::vector<TraceEvent> events;
  for (const TaskRecord& task : tasks_)
    events.push_back(
        task_event(rank_, task.enter, microseconds(task.begin), microseconds(task.end)));
  for (const InnerRecord& inner : inner_) {
    TraceEvent event = inner_event(rank_, inner.category, inner.what, microseconds(inner.begin),
                                   microseconds(inner.end));
    if (inner.node >= 0) {
      event.name = graph_.node(inner.node).name;
      event.args = {{"phase", inner.what}};
    }
    events.push_back(std::move(event));
  }
  return events;
}

}  // namespace tessera
