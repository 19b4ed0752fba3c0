#pragma once
// The stopwatch: times steps of a placement on ranks that are threads of this process, and counts what
// they hold and send.

#include <cstdint>
#include <vector>

#include "tessera/graph/graph.h"
#include "tessera/plan/plan.h"

namespace tessera {

struct BenchOptions {
  Plan plan;
  at::ScalarType real = at::kFloat;
  int64_t warmup = 2;
  int64_t iterations = 10;
  uint64_t seed = 1;
  int threads = 1;      // per rank
  bool update = false;  // time an SGD step too
  double timeout_seconds = 600;
};

struct RankMeasurement {
  int64_t peak_value_bytes = 0;
  int64_t parameter_bytes = 0;
  int64_t workspace_bytes = 0;
  int64_t bytes_sent = 0;  // per step
  int64_t messages = 0;    // per step
  double blocked_ms = 0;   // per step, mean: waiting for messages
};

struct BenchReport {
  int ranks = 1;
  double median_ms = 0;
  double p10_ms = 0;
  double p90_ms = 0;
  double loss = 0;             // of the last step
  int64_t peak_rss_bytes = 0;  // of the process, and so of all its ranks together
  std::vector<RankMeasurement> per_rank;
};

/// Forward, loss, backward and the reduction of the gradients. A step lasts until its last rank is
/// done. Inputs are drawn once, before timing.
BenchReport benchmark(const Graph& graph, const BenchOptions& options);

}  // namespace tessera
