#pragma once
// A world of threads whose traffic is counted.

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "tessera/comm/decorators.h"
#include "tessera/comm/threads/threads.h"
#include "tests/ranks/comm/traffic.h"

namespace tessera {

struct RecordedWorld {
  explicit RecordedWorld(int size) : transports(threads::create(size)), counters(size) {
    for (int rank = 0; rank < size; ++rank)
      transports[rank] = recording(std::move(transports[rank]), &counters[rank]);
  }

  void expect(const Traffic& promised) const {
    int64_t bytes = 0, most_messages = 0;
    for (const TransportCounters& counted : counters) {
      bytes += counted.bytes_sent;
      most_messages = std::max(most_messages, counted.messages);
    }
    EXPECT_EQ(bytes, promised.bytes_of_all);
    EXPECT_LE(most_messages, promised.most_messages);
  }

  std::vector<std::unique_ptr<Transport>> transports;
  std::vector<TransportCounters> counters;
};

}  // namespace tessera
