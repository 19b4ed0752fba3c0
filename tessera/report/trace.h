#pragma once
// What ranks did and when, as a file that Perfetto (https://ui.perfetto.dev) and chrome://tracing
// open: the Chrome trace event format. It knows nothing of programs; task_events.h turns tasks into
// events.
//
// Example:
//   TraceEvent event{.name = "forward 0", .category = "forward", .begin_us = 0, .duration_us = 1};
//   std::string file = to_chrome_trace({event}, {"rank 0"});

#include <map>
#include <string>
#include <vector>

namespace tessera {

struct TraceEvent {
  std::string name = {};
  std::string category = {};  // viewers filter by it
  int rank = 0;
  double begin_us = 0;
  double duration_us = 0;
  std::map<std::string, std::string> args = {};  // shown where an event is selected
  bool operator==(const TraceEvent&) const = default;
};

/// One line per rank, named by `rank_names`. Events of a rank lie one after the other or one inside
/// the other. Times are rounded to an eighth of a microsecond.
std::string to_chrome_trace(const std::vector<TraceEvent>& events,
                            const std::vector<std::string>& rank_names);

/// Events as text that travels between ranks, exactly.
std::string events_to_json(const std::vector<TraceEvent>& events);
std::vector<TraceEvent> events_from_json(const std::string& text);

}  // namespace tessera
