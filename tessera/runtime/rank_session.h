#pragma once
// What a rank needs to run its program: it lowers it, and has parameters, an executor, and a
// transport that counts. Used by the proof and the stopwatch, over any transport.

#include <functional>
#include <memory>

#include "tessera/comm/decorators.h"
#include "tessera/lower/lower.h"
#include "tessera/runtime/binding.h"
#include "tessera/runtime/executor.h"

namespace tessera {

struct SessionOptions {
  at::ScalarType real = at::kDouble;
  uint64_t seed = 1;
  int threads = 1;  // per rank
  DeviceChoice device = {};
};

class RankSession {
 public:
  /// Collective over all ranks. `lowering` and `transport` outlive it.
  RankSession(const Lowering& lowering, Transport& transport, const SessionOptions& options);

  Transport& transport() { return *transport_; }
  const TransportCounters& counters() const { return counters_; }
  ParameterStore& parameters() { return parameters_; }
  Executor& executor() { return executor_; }
  Device& device() { return *device_; }
  const Program& program() const { return executor_.program(); }
  const Members& everyone() const { return everyone_; }

 private:
  RankSession(const Lowering& lowering, Program program, Transport& transport,
              const SessionOptions& options);

  TransportCounters counters_;
  std::unique_ptr<Transport> transport_;
  const std::unique_ptr<Device> device_;
  Members everyone_;
  ParameterStore parameters_;
  Executor executor_;
};

/// Runs `body` on `ranks` threads of this process and rethrows the first failure.
void run_on_threads(int ranks, int threads_per_rank, double timeout_seconds,
                    const std::function<void(Transport&)>& body, Bind bind = Bind::kOff);

/// The same for a body that returns a report; rank 0's is returned.
template <class Report>
Report report_from_threads(int ranks, int threads_per_rank, double timeout_seconds,
                           const std::function<Report(Transport&)>& body) {
  Report report;
  run_on_threads(ranks, threads_per_rank, timeout_seconds, [&](Transport& transport) {
    Report own = body(transport);
    if (transport.rank() == 0) report = std::move(own);
  });
  return report;
}

}  // namespace tessera
