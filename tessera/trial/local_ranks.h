#pragma once
// Runs a lowered graph on ranks that are threads of this process: what `verify`, `bench` and the
// tests share.

#include <chrono>
#include <functional>
#include <vector>

#include "tessera/comm/decorators.h"
#include "tessera/lower/lower.h"
#include "tessera/runtime/executor.h"

namespace tessera {

struct LocalOptions {
  at::ScalarType real = at::kDouble;
  uint64_t seed = 1;
  int threads = 1;  // per rank
  std::chrono::milliseconds timeout{60'000};
};

/// What a rank's body works with.
struct LocalRank {
  int rank = 0;
  Transport* transport = nullptr;
  const TransportCounters* counters = nullptr;
  ParameterStore* parameters = nullptr;
  Executor* executor = nullptr;
};

/// Runs `body` on one thread per program of `lowered`. Rethrows the first failure.
void run_local(const Lowered& lowered, const LocalOptions& options,
               const std::function<void(LocalRank&)>& body);

/// Holds OpenBLAS to `threads` threads, where it is loaded: it does not follow ATen's setting, and
/// ranks that are threads would each start as many as there are cores.
void set_blas_threads(int threads);

}  // namespace tessera
