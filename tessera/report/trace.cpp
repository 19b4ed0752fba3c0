#include "tessera/report/trace.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "tessera/base/error.h"

namespace tessera {
namespace {

using nlohmann::json;

/// Viewers count in whole nanoseconds and drop an event that leaves the one around it by a single
/// one. Eighths of a microsecond are whole nanoseconds and exact in binary, so that ends that were
/// equal stay equal.
double in_eighths(double microseconds) { return std::round(microseconds * 8) / 8; }

json timed_event(const TraceEvent& event) {
  TESSERA_CHECK(
      std::isfinite(event.begin_us) && std::isfinite(event.duration_us) && event.duration_us >= 0,
      "event {} of rank {} begins at {} us and lasts {} us", event.name, event.rank, event.begin_us,
      event.duration_us);
  const double begin = in_eighths(event.begin_us);
  const double end = in_eighths(event.begin_us + event.duration_us);
  return json{{"ph", "X"},   {"name", event.name}, {"cat", event.category}, {"pid", 0},
              {"ts", begin}, {"dur", end - begin}, {"tid", event.rank},     {"args", event.args}};
}

json metadata(const char* what, int rank, json args) {
  return json{{"ph", "M"}, {"name", what}, {"pid", 0}, {"tid", rank}, {"args", std::move(args)}};
}

/// Names come from models and may hold anything.
std::string dump(const json& tree) {
  return tree.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

std::string to_chrome_trace(const std::vector<TraceEvent>& events,
                            const std::vector<std::string>& rank_names) {
  json list = json::array();
  for (size_t r = 0; r < rank_names.size(); ++r) {
    const int rank = static_cast<int>(r);
    list.push_back(metadata("thread_name", rank, {{"name", rank_names[r]}}));
    list.push_back(metadata("thread_sort_index", rank, {{"sort_index", rank}}));
  }
  for (const TraceEvent& event : events) list.push_back(timed_event(event));
  return dump(json{{"traceEvents", std::move(list)}, {"displayTimeUnit", "ms"}});
}

std::string events_to_json(const std::vector<TraceEvent>& events) {
  json list = json::array();
  for (const TraceEvent& event : events)
    list.push_back(
        {event.name, event.category, event.rank, event.begin_us, event.duration_us, event.args});
  return dump(list);
}

std::vector<TraceEvent> events_from_json(const std::string& text) {
  const json list = json::parse(text);
  std::vector<TraceEvent> events;
  for (const json& each : list)
    events.push_back({each[0], each[1], each[2], each[3], each[4], each[5]});
  return events;
}

}  // namespace tessera
