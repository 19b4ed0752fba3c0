#include "tessera/simulate/timeline_trace.h"

#include "tessera/report/task_events.h"

namespace tessera {

std::vector<TraceEvent> to_trace(const Timeline& timeline) {
  const double us = timeline.unit == TimeUnit::kSeconds ? 1e6 : 1e3;
  std::vector<TraceEvent> events;
  for (const TimelineSpan& task : timeline.tasks)
    events.push_back(task_event(task.rank, task.enter, task.begin * us, task.end * us));
  for (const TimelineSpan& wait : timeline.waits)
    events.push_back(inner_event(wait.rank, kWaitCategory, "wait", wait.begin * us, wait.end * us));
  return events;
}

}  // namespace tessera
