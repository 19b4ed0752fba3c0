// Who is bound to what, and who is left alone.

#include "tessera/runtime/binding.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <thread>

#include "tessera/comm/transport.h"
#include "tessera/runtime/affinity.h"
#include "tessera/runtime/rank_session.h"
#include "tests/unit/refusal.h"

namespace tessera::binding_test {
namespace {

CpusHere eight() { return {true, *parse_cpus("0-7"), 8, ""}; }

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Binding, IsForRanksThatHaveRoom) {
  for (const Bind bind : {Bind::kAuto, Bind::kOn}) {
    EXPECT_EQ(why_not_bound({8, 1}, eight(), bind), "");
    EXPECT_EQ(why_not_bound({2, 4}, eight(), bind), "");
    EXPECT_EQ(why_not_bound({2, 4, /*are_processes=*/true}, eight(), bind), "");
    EXPECT_EQ(why_not_bound({3, 3}, eight(), bind),
              "3 workers with 3 threads each need 9 CPUs, and there are 8; use fewer --workers or "
              "--threads");
  }
  EXPECT_NE(why_not_bound({2, 1}, eight(), Bind::kOff), "");
}

TEST(Binding, LeavesAloneWhatSomebodyHasBound) {
  CpusHere some = eight();
  some.allowed = *parse_cpus("2-5");
  EXPECT_TRUE(says(why_not_bound({2, 1}, some, Bind::kAuto), "started on the CPUs 2-5 of 8"));
  EXPECT_EQ(why_not_bound({2, 1}, some, Bind::kOn), "") << "asked for, it shares what there is";
  EXPECT_NE(why_not_bound({8, 1}, some, Bind::kOn), "");
  EXPECT_TRUE(
      says(why_not_bound({2, 1, /*are_processes=*/true}, some, Bind::kOn), "--bind-to none"))
      << "each process may have another mask";
}

TEST(Binding, LeavesAloneWhatOpenMpBinds) {
  CpusHere bound = eight();
  bound.bound_by_openmp = "OMP_PROC_BIND";
  for (const Bind bind : {Bind::kAuto, Bind::kOn})
    EXPECT_TRUE(says(why_not_bound({2, 1}, bound, bind), "OMP_PROC_BIND is set"));
  for (const char* value : {"false", "FALSE", ""}) {
    setenv("OMP_PROC_BIND", value, 1);
    EXPECT_EQ(cpus_here().bound_by_openmp, "") << value;
  }
  setenv("OMP_PROC_BIND", "close", 1);
  EXPECT_EQ(cpus_here().bound_by_openmp, "OMP_PROC_BIND");
  unsetenv("OMP_PROC_BIND");
}

TEST(Binding, CannotBeWhereTheSystemRefuses) {
  CpusHere closed = eight();
  closed.can_bind = false;
  EXPECT_NE(why_not_bound({2, 1}, closed, Bind::kAuto), "");
  EXPECT_NE(why_not_bound({2, 1}, closed, Bind::kOn), "");
}

TEST(Binding, WhatCannotBeDoneIsRefusedWhereItWasAskedFor) {
  EXPECT_TRUE(choose_cpus({.ranks = 100'000}, Bind::kAuto).empty());
  EXPECT_TRUE(choose_cpus({.ranks = 1}, Bind::kAuto).empty());
  EXPECT_TRUE(choose_cpus({.ranks = 1}, Bind::kOff).empty());
  expect_refusal([] { choose_cpus({.ranks = 100'000}, Bind::kOn); },
                 "[--bind] workers cannot be bound: 100000 workers with 1 thread each need");
  expect_refusal([] { parse_bind("yes"); }, "use auto, on or off");
}

/// The masks of all threads that this rank computes with.
std::set<Cpus> masks_of_team() {
  std::mutex mutex;
  std::set<Cpus> masks;
#pragma omp parallel
  {
    const Cpus own = thread_affinity();
    std::lock_guard lock(mutex);
    masks.insert(own);
  }
  return masks;
}

/// By rank.
std::vector<std::set<Cpus>> masks_of_ranks(int ranks, int threads, Bind bind) {
  std::vector<std::set<Cpus>> masks(ranks);
  run_on_threads(
      ranks, threads, /*timeout_seconds=*/30,
      [&](Transport& transport) { masks[transport.rank()] = masks_of_team(); }, bind);
  return masks;
}

TEST(Binding, AThreadIsBoundWhileItLives) {
  const Cpus before = thread_affinity();
  if (before.size() < 2) GTEST_SKIP() << "one CPU";
  {
    const BoundThread bound({before.back()});
    EXPECT_EQ(thread_affinity(), Cpus{before.back()});
    std::thread([&] { EXPECT_EQ(thread_affinity(), Cpus{before.back()}); }).join();
    const BoundThread left_alone({});
    EXPECT_EQ(thread_affinity(), Cpus{before.back()});
  }
  EXPECT_EQ(thread_affinity(), before);
}

TEST(Binding, RanksAndTheirThreadsHaveTheirShares) {
  const Cpus all = thread_affinity();
  const int count = static_cast<int>(all.size());
  if (count < 2) GTEST_SKIP() << "one CPU";
  for (const auto& [ranks, threads] : {std::pair{2, count / 2}, {count, 1}, {1, count}}) {
    SCOPED_TRACE(testing::Message() << ranks << " x " << threads);
    const std::vector<Cpus> shares = choose_cpus({.ranks = ranks, .threads = threads}, Bind::kOn);
    ASSERT_EQ(shares.size(), static_cast<size_t>(ranks));
    const std::vector<std::set<Cpus>> masks = masks_of_ranks(ranks, threads, Bind::kOn);
    for (int rank = 0; rank < ranks; ++rank) EXPECT_EQ(masks[rank], std::set<Cpus>{shares[rank]});
  }
  EXPECT_EQ(thread_affinity(), all) << "the program's own thread is not";
}

TEST(Binding, OffLeavesThemAlone) {
  const Cpus all = thread_affinity();
  for (const std::set<Cpus>& masks : masks_of_ranks(2, 1, Bind::kOff))
    EXPECT_EQ(masks, std::set<Cpus>{all});
}

}  // namespace
}  // namespace tessera::binding_test
