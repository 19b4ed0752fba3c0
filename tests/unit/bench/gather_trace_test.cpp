#include "tessera/bench/gather_trace.h"

#include <gtest/gtest.h>

#include "tessera/comm/threads/threads.h"

namespace tessera::gather_trace_test {
namespace {

/// As many as the number of the rank, with names that text could damage.
std::vector<TraceEvent> events_of(int rank) {
  std::vector<TraceEvent> events;
  for (int i = 0; i < rank; ++i)
    events.push_back({.name = "\"task\" " + std::to_string(i) + "\n",
                      .category = "forward",
                      .rank = rank,
                      .begin_us = i + 0.1,
                      .duration_us = 1.0 / 3,
                      .args = {{"micro-batch", std::to_string(i)}}});
  return events;
}

TEST(GatherTrace, EveryMemberGetsTheEventsOfAllInGroupOrder) {
  std::vector<TraceEvent> expected;
  for (const int rank : {0, 1, 3})
    for (const TraceEvent& event : events_of(rank)) expected.push_back(event);
  std::vector<std::vector<TraceEvent>> gathered(4);
  threads::run_ranks(4, [&](Transport& transport) {
    const int rank = transport.rank();
    if (rank != 2) gathered[rank] = gather_trace(transport, {0, 1, 3}, events_of(rank));
  });
  EXPECT_EQ(expected.size(), 4u);
  for (const int rank : {0, 1, 3}) EXPECT_EQ(gathered[rank], expected) << "rank " << rank;
}

}  // namespace
}  // namespace tessera::gather_trace_test
