#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "tessera/report/trace.h"

namespace tessera {

/// As viewers read them, events of one rank lie one after the other or inside an earlier one; what
/// overlaps in part is dropped.
inline void expect_nested(const std::vector<TraceEvent>& events) {
  const nlohmann::json trace = nlohmann::json::parse(to_chrome_trace(events, {}));
  const nlohmann::json& written = trace.at("traceEvents");
  ASSERT_EQ(written.size(), events.size());
  for (size_t i = 0; i < written.size(); ++i)
    for (size_t j = i + 1; j < written.size(); ++j) {
      if (written[i].at("tid") != written[j].at("tid")) continue;
      const double a = written[i].at("ts"), a_end = a + written[i].at("dur").get<double>();
      const double b = written[j].at("ts"), b_end = b + written[j].at("dur").get<double>();
      EXPECT_TRUE(a_end <= b || b_end <= a || (a <= b && b_end <= a_end))
          << written[i] << " and " << written[j];
    }
}

}  // namespace tessera
