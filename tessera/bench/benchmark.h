#pragma once
// The stopwatch: times steps of a placement, and counts what its ranks hold and send.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/comm/decorators.h"
#include "tessera/comm/transport.h"
#include "tessera/lower/lower.h"
#include "tessera/report/trace_recorder.h"
#include "tessera/runtime/device.h"

namespace tessera {

struct BenchOptions {
  Plan plan;
  at::ScalarType real = at::kFloat;
  int64_t warmup = 2;
  int64_t iterations = 10;
  uint64_t seed = 1;
  int threads = 1;                             // per rank
  bool update = false;                         // time an SGD step too
  std::optional<TraceRecorder::Detail> trace;  // record one more step
  std::optional<Delay> delay;                  // pretend that messages take this long
  DeviceChoice device = {};
  double timeout_seconds = 600;
};

struct RankMeasurement {
  int64_t peak_value_bytes = 0;
  int64_t arena_bytes = 0;      // the memory that values lie in
  int64_t reduction_bytes = 0;  // of those, what reductions received
  int64_t scratch_bytes = 0;    // of those, what kernels had for themselves
  int64_t parameter_bytes = 0;  // what lives as long as the parameters
  int64_t workspace_bytes = 0;
  int64_t bytes_sent = 0;  // per step
  int64_t messages = 0;    // per step
  double blocked_ms = 0;   // per step, mean: waiting for messages
  // With a delay, per step, mean:
  double transfer_ms = 0;      // what it makes messages take
  double exposed_ms = 0;       // ... of that, what was left when the rank waited (decorators.h)
  int64_t peak_rss_bytes = 0;  // of the rank's process; ranks that are threads share it
  int64_t device_bytes = 0;    // most that tensors took of a GPU's memory; ranks may share it
};

struct BenchReport {
  int ranks = 1;
  double median_ms = 0;
  double p10_ms = 0;
  double p90_ms = 0;
  double loss = 0;                          // of the last step
  std::optional<double> residual;           // of its multigrid solve, where there is one
  std::optional<double> gradient_residual;  // ... where it is measured
  std::vector<RankMeasurement> per_rank;
  std::vector<std::string> devices;     // of each rank: "cpu", "cuda:0 (NVIDIA H200)"
  std::vector<std::string> cpus;        // on which each rank's threads may run: "0-3"
  std::vector<TraceEvent> trace;        // of all ranks, where asked for
  std::vector<std::string> rank_names;  // of the trace

  /// The part of the time of all messages that passes while ranks work; none without a delay, or
  /// without messages.
  std::optional<double> hidden_share() const;
};

/// How the timed step is lowered.
LowerOptions timed_step(const BenchOptions& options);

/// Collective over all ranks of the transport, which are those of the plan; `lowering` is that of a
/// timed_step(). The report is the same on all. Forward, loss, backward and the reduction of the
/// gradients; a step lasts as long as its slowest rank. Inputs are drawn once, before timing.
BenchReport benchmark(const Lowering& lowering, const BenchOptions& options, Transport& transport);

/// The same on ranks that are threads of this process.
BenchReport benchmark(const Graph& graph, const BenchOptions& options);

}  // namespace tessera
