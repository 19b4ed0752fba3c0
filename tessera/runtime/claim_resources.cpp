#include "tessera/runtime/claim_resources.h"

#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>

#include <algorithm>
#include <latch>
#include <limits>
#include <system_error>
#include <thread>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/free_memory.h"
#include "tessera/base/quantity.h"
#include "tessera/base/text.h"

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
        "[threads] {} of {} can be started: {}; use fewer --workers or --threads, or raise "
        "the limit (ulimit -u, ulimit -v, or the container's)",
        started, counted(count, "thread"), std::generic_category().message(failed));
}

/// Each rank has its own thread, those of its kernels, and one that reads ahead. The process has
/// those of OpenBLAS and of LibTorch's pool, those of the oracle that `verify` compares with, and
/// autograd's.
int num_threads(int ranks, int threads_per_rank) {
  constexpr int kOfAutograd = 2;
  return ranks * (threads_per_rank + 1) + 3 * threads_per_rank + kOfAutograd;
}

/// OpenBLAS maps a buffer for every thread that multiplies matrices at once, and keeps it.
int num_buffers(int ranks, int threads_per_rank) { return (ranks + 1) * threads_per_rank + 1; }

int64_t stack_bytes() {
  pthread_attr_t attributes;
  size_t bytes = size_t{8} << 20;
  if (pthread_getattr_default_np(&attributes) != 0) return static_cast<int64_t>(bytes);
  pthread_attr_getstacksize(&attributes, &bytes);
  pthread_attr_destroy(&attributes);
  return static_cast<int64_t>(bytes);
}

/// Here OpenBLAS maps its buffers while we know that there is room.
void claim_blas_buffers(int count) {
  constexpr int kMostBuffers = 128;  // that all its builds have a place for
  using Take = void* (*)(int);
  using GiveBack = void (*)(void*);
  static const auto take = reinterpret_cast<Take>(dlsym(RTLD_DEFAULT, "blas_memory_alloc"));
  static const auto give_back = reinterpret_cast<GiveBack>(dlsym(RTLD_DEFAULT, "blas_memory_free"));
  if (!take || !give_back) return;
  std::vector<void*> buffers;
  for (int i = 0; i < std::min(count, kMostBuffers); ++i) buffers.push_back(take(0));
  for (void* buffer : buffers) give_back(buffer);
}

/// What is claimed must be there at once.
void claim_address_space(int ranks, int threads_per_rank) {
  const int64_t needed = claimed_bytes(ranks, threads_per_rank), free = free_address_space();
  if (needed > free)
    throw_error<OutOfMemory>(
        "[memory] {} worker(s) with {} thread(s) need {} of address space besides their values, "
        "the limit (ulimit -v, ulimit -d) leaves {}; raise it, or use fewer --workers or --threads",
        ranks, threads_per_rank, format_bytes(needed), format_bytes(free));
  claim_blas_buffers(num_buffers(ranks, threads_per_rank));
}

}  // namespace

int64_t claimed_bytes(int ranks, int threads_per_rank) {
  constexpr int64_t kBufferBytes = int64_t{128} << 20;
  constexpr int64_t kRest = int64_t{64} << 20;  // for all else that is small
  return num_buffers(ranks, threads_per_rank) * kBufferBytes +
         num_threads(ranks, threads_per_rank) * stack_bytes() + kRest;
}

void claim_resources(int ranks, int threads_per_rank) {
  if (threads_per_rank > most_useful_threads())
    throw_error<InvalidInput>(
        "[--threads] {} threads per worker are of no use on {}; use at most {}", threads_per_rank,
        counted(std::thread::hardware_concurrency(), "core"), most_useful_threads());
  const bool is_limited = free_address_space() != std::numeric_limits<int64_t>::max();
  if (is_limited) mallopt(M_ARENA_MAX, 1);  // each thread's own would take 64 MiB or more
  try_threads(num_threads(ranks, threads_per_rank));
  if (is_limited) claim_address_space(ranks, threads_per_rank);
}

}  // namespace tessera
