#include "tessera/runtime/claim_resources.h"

#include <dlfcn.h>

#include <algorithm>
#include <latch>
#include <limits>
#include <system_error>
#include <thread>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/free_memory.h"
#include "tessera/base/quantity.h"

namespace tessera {
namespace {

/// More of them only wait for each other. A few may be had on any machine, to try things out.
int most_useful_threads() {
  return std::max(16, 4 * static_cast<int>(std::thread::hardware_concurrency()));
}

/// All at once: as many as there will be.
void try_threads(int count) {
  std::latch everyone(count + 1);
  std::vector<std::jthread> threads;
  threads.reserve(count);
  int failed = 0;
  for (int i = 0; i < count && failed == 0; ++i) {
    try {
      threads.emplace_back([&everyone] { everyone.arrive_and_wait(); });
    } catch (const std::system_error& error) {
      failed = error.code().value();
    }
  }
  const int started = static_cast<int>(threads.size());
  everyone.count_down(count - started + 1);
  if (failed != 0)
    throw_error<OutOfMemory>(
        "[threads] {} of {} threads can be started: {}; use fewer --workers or --threads, or raise "
        "the limit (ulimit -u, ulimit -v, or the container's)",
        started, count, std::generic_category().message(failed));
}

/// OpenBLAS maps a buffer for every thread that multiplies matrices at once, and keeps it. Here it
/// maps them while we know that there is room.
void claim_blas_buffers(int count) {
  constexpr int64_t kBufferBytes = int64_t{128} << 20;
  constexpr int64_t kRest = int64_t{64} << 20;  // for all else that is small
  constexpr int kMostBuffers = 128;             // that all its builds have a place for
  const int64_t free = free_address_space();
  using Take = void* (*)(int);
  using GiveBack = void (*)(void*);
  static const auto take = reinterpret_cast<Take>(dlsym(RTLD_DEFAULT, "blas_memory_alloc"));
  static const auto give_back = reinterpret_cast<GiveBack>(dlsym(RTLD_DEFAULT, "blas_memory_free"));
  if (free == std::numeric_limits<int64_t>::max() || !take || !give_back) return;
  const int64_t needed = count * kBufferBytes + kRest;
  if (needed > free)
    throw_error<OutOfMemory>(
        "[memory] {} thread(s) that multiply matrices need {} of address space, the limit (ulimit "
        "-v, ulimit -d) leaves {}; raise it, or use fewer --workers or --threads",
        count, format_bytes(needed), format_bytes(free));
  std::vector<void*> buffers;
  for (int i = 0; i < std::min(count, kMostBuffers); ++i) buffers.push_back(take(0));
  for (void* buffer : buffers) give_back(buffer);
}

}  // namespace

void claim_resources(int ranks, int threads_per_rank) {
  if (threads_per_rank > most_useful_threads())
    throw_error<InvalidInput>(
        "[--threads] {} threads per worker are of no use on {} cores; use at most {}",
        threads_per_rank, std::thread::hardware_concurrency(), most_useful_threads());
  // Each rank has its own thread, those of its kernels, and one that reads ahead. The process has
  // OpenBLAS's threads, and those of the oracle that `verify` compares with, autograd's among them.
  constexpr int kOfAutograd = 2;
  try_threads(ranks * (threads_per_rank + 1) + 2 * threads_per_rank + kOfAutograd);
  claim_blas_buffers((ranks + 1) * threads_per_rank + 1);
}

}  // namespace tessera
