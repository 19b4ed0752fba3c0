#pragma once
// NCCL's communicators of one rank, a stream for each, and the watchdog that ends them.
//
//   queue       ── ready ─────────────────────────── waits for done ──►
//                    └──►                              ▲
//   stream of a line   waits ── NCCL's kernel ── done ─┘

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "tessera/comm/transport.h"

namespace tessera::nccl {

enum class Line { kUp, kDown, kSums };
inline constexpr int kNumLines = 3;

/// Throws CommError.
void check(cudaError_t result, const char* doing);

/// A call that is not through yet has not failed.
inline bool is_error(ncclResult_t result) {
  return result != ncclSuccess && result != ncclInProgress;
}

/// A moment of a stream.
using Event = std::shared_ptr<CUevent_st>;
Event record(cudaStream_t stream);

class Communicators {
 public:
  /// Collective over all ranks of `host`, which outlives it.
  Communicators(Transport& host, int device, std::chrono::milliseconds timeout);
  /// Waits for what has been queued, then for the other ranks, unless something has failed.
  ~Communicators();

  /// Queues what `calls` asks NCCL for, as one group, after `ready`; the moment after it. `what`
  /// says what for. Throws CommError, as all below.
  using Calls = std::function<ncclResult_t(ncclComm_t, cudaStream_t)>;
  Event queue(Line line, const Event& ready, const Calls& calls, const std::string& what);

  /// Throws why the communicators have been ended, if they have.
  void expect_alive();
  /// Ends them, so that nothing that was queued touches memory any more when this returns.
  void abort(const std::string& reason) noexcept;

 private:
  struct Queued {
    Line line;
    Event ready, done;
    std::chrono::steady_clock::time_point since;  // when its turn had come
    std::string what;
  };

  cudaStream_t stream_of(Line line) const { return streams_[static_cast<size_t>(line)]; }
  void connect();
  void greet_all();
  void await(ncclComm_t communicator, const char* doing);
  void expect_success(ncclResult_t result, const char* doing);
  void throw_failure() const;
  void leave() noexcept;
  void watch();
  std::optional<std::string> trouble();
  std::optional<std::string> overdue();
  void end(const std::string& reason) noexcept;

  Transport& host_;
  const int device_;
  const std::chrono::milliseconds timeout_;
  const int exceptions_;  // in flight when it was made
  std::array<cudaStream_t, kNumLines> streams_{};

  std::mutex mutex_;  // of all below
  std::condition_variable woken_;
  std::array<ncclComm_t, kNumLines> communicators_{};
  std::deque<Queued> queued_;
  std::optional<std::string> failure_;
  bool leaving_ = false;
  std::thread watchdog_;  // last: it uses the others
};

}  // namespace tessera::nccl
