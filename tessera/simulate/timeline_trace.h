#pragma once
// A timeline as trace events, to be laid beside those of a real run.

#include <vector>

#include "tessera/report/trace.h"
#include "tessera/simulate/timeline.h"

namespace tessera {

/// Tasks, and waits inside them. A unit of TimeUnit::kTasks is drawn as one millisecond.
std::vector<TraceEvent> to_trace(const Timeline& timeline);

}  // namespace tessera
