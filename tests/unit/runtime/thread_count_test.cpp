// How many threads the kernels of a rank really use.

#include "tessera/runtime/thread_count.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <omp.h>

#include <mutex>
#include <set>
#include <thread>

#include "tessera/comm/threads/threads.h"
#include "tessera/runtime/rank_session.h"
#include "tests/unit/graph/two_layers.h"

namespace tessera::thread_count_test {
namespace {

/// Runs `body` on a thread of its own, whose settings go with it; the process's stay.
template <class Body>
void on_a_rank(const Body& body) {
  const int before = at::get_num_threads();
  std::thread(body).join();
  at::set_num_threads(before);  // ATen gives the last number set to threads that set none
}

int threads_of_aten() {
  std::mutex mutex;
  std::set<std::thread::id> threads;
  at::parallel_for(0, 64, /*grain_size=*/1, [&](int64_t, int64_t) {
    std::lock_guard lock(mutex);
    threads.insert(std::this_thread::get_id());
  });
  return static_cast<int>(threads.size());
}

int threads_of_openmp() {
  int threads = 0;
#pragma omp parallel reduction(+ : threads)
  ++threads;
  return threads;
}

TEST(ThreadCount, IsThatOfAtenAndOfOpenMp) {
  for (const int threads : {1, 3})
    on_a_rank([&] {
      set_rank_threads(threads);
      EXPECT_EQ(threads_of_aten(), threads);
      EXPECT_EQ(threads_of_openmp(), threads);
    });
}

TEST(ThreadCount, IsARanksOwn) {
  on_a_rank([] {
    set_rank_threads(3);
    EXPECT_EQ(threads_of_aten(), 3);
    std::thread([] {
      set_rank_threads(1);
      EXPECT_EQ(threads_of_aten(), 1);
    }).join();
    EXPECT_EQ(threads_of_aten(), 3);
    EXPECT_EQ(threads_of_openmp(), 3);
  });
}

TEST(ThreadCount, IsSetForTheRankOfASession) {
  const Lowering lowering(two_layers(), {});
  on_a_rank([&] {
    const auto world = threads::create(1);
    const RankSession session(lowering, *world[0], {.threads = 3});
    EXPECT_EQ(threads_of_aten(), 3);
  });
}

/// Whatever the body is: training makes no session.
TEST(ThreadCount, IsSetForEveryRankOfAWorldOfThreads) {
  for (const int threads : {1, 3})
    on_a_rank([&] {
      run_on_threads(2, threads, /*timeout_seconds=*/30, [&](Transport&) {
        EXPECT_EQ(threads_of_aten(), threads);
        EXPECT_EQ(threads_of_openmp(), threads);
      });
    });
}

TEST(ThreadCount, OfBlasIsOneForTheProcess) {
  using GetThreads = int (*)();
  const auto get = reinterpret_cast<GetThreads>(dlsym(RTLD_DEFAULT, "openblas_get_num_threads"));
  if (!get) GTEST_SKIP() << "OpenBLAS is not loaded";
  const int before = get();
  for (const int threads : {2, 1}) {
    set_blas_threads(threads);
    EXPECT_EQ(get(), threads);
    std::thread([&] { EXPECT_EQ(get(), threads); }).join();
  }
  set_blas_threads(before);
}

}  // namespace
}  // namespace tessera::thread_count_test
