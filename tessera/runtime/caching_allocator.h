#pragma once
// The CPU memory of all tensors. It keeps the pages it got: after the first step nothing comes from
// the system, and no page is faulted in again. It also sees what ATen allocates inside its kernels,
// and keeps an account per rank, so that workspace can be reported separately.
//
// Thread-safe. A block may be freed by another thread than the one that took it; it is booked on
// the account that was current when it was taken.

#include <atomic>
#include <cstdint>

namespace tessera {

/// Bytes that a rank's kernels and buffers hold.
class MemoryAccount {
 public:
  void add(int64_t bytes);
  int64_t live() const { return live_.load(std::memory_order_relaxed); }
  int64_t peak() const { return peak_.load(std::memory_order_relaxed); }
  /// Starts a new peak from what is live now.
  void reset_peak() { peak_.store(live(), std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> live_{0};
  std::atomic<int64_t> peak_{0};
};

/// Makes it LibTorch's CPU allocator. Idempotent; call before the first tensor of a run. Does
/// nothing where the environment has TESSERA_SYSTEM_MALLOC, so that sanitizers see every block.
void install_caching_allocator();

/// Books what this thread allocates on `account` while it lives; accounts outlive their blocks.
class AccountScope {
 public:
  explicit AccountScope(MemoryAccount* account);
  ~AccountScope();
  AccountScope(const AccountScope&) = delete;
  AccountScope& operator=(const AccountScope&) = delete;

 private:
  MemoryAccount* previous_;
};

/// Bytes taken from the system so far, in use or cached.
int64_t system_bytes();
/// Gives cached blocks back to the system.
void release_cached_memory();

}  // namespace tessera
