// Worlds that end badly while all processes live: every rank says why, nobody hangs, memory is let
// go of, and the launcher returns the code that the ranks agree on, or 3.

#include <fmt/format.h>

#include <random>

#include "tessera/base/error.h"
#include "tessera/comm/mpi/mpi.h"
#include "tests/fault/mpi/expect.h"
#include "tests/ranks/comm/watched.h"

namespace tessera::ending_test {
namespace {

class MpiEnding : public WatchedTest {};

TEST_F(MpiEnding, AnExceptionOfOneRankEndsAllWithItsReason) {
  const JobResult result = play(4, "throw_on_one");
  EXPECT_EQ(result.exit_code, 3);
  expect_contains(result, "[data] rank 1/4: file 7 is empty");
  for (int rank : {0, 2, 3})
    expect_contains(result,
                    fmt::format("[comm] rank {}/4: rank 1 failed: [data] file 7 is empty", rank));
}

TEST_F(MpiEnding, TheExitCodeIsTheOneThatAllRanksHave) {
  for (int code : {0, 1, 4}) EXPECT_EQ(play(3, "exit", {std::to_string(code)}).exit_code, code);
  EXPECT_EQ(play(3, "throw_on_all").exit_code, 2);
  for (int code : {1, 2}) {  // rank 0 compares and writes for all
    const std::vector<std::string> arguments{std::to_string(code)};
    EXPECT_EQ(play(3, "exit_of_first", arguments).exit_code, code);
  }
  const JobResult apart = play(3, "exit_apart");
  EXPECT_EQ(apart.exit_code, 3);
  expect_contains(apart, "ended with exit code 2");
}

TEST_F(MpiEnding, ARankThatEndsBeforeItTakesPartEndsTheJob) {
  EXPECT_NE(play(3, "exit_before").exit_code, 0);
}

TEST_F(MpiEnding, SizesThatDifferAreNamedOnAllRanks) {
  struct Pair {
    int sent, expected;
  };
  for (const Pair& pair : {Pair{24, 40}, Pair{50'000, 24}, Pair{50'000, 60'000}}) {
    const JobResult result =
        play(3, "mismatch", {std::to_string(pair.sent), std::to_string(pair.expected)});
    EXPECT_EQ(result.exit_code, 3);
    for (int rank : {0, 1, 2})
      expect_contains(result, fmt::format("[comm] rank {}/3: the message from rank 0 to rank 1 "
                                          "has {} bytes at the sender and {} bytes at the receiver",
                                          rank, pair.sent, pair.expected));
  }
}

TEST_F(MpiEnding, ARankThatEndsEarlyIsNamedByThoseWhoWaitForIt) {
  const JobResult result = play(4, "leave_early");
  EXPECT_EQ(result.exit_code, 3);
  for (int rank : {0, 1, 3})
    expect_contains(result,
                    fmt::format("[comm] rank {}/4: rank 2 failed: it ended while rank ", rank));
}

TEST_F(MpiEnding, AMessageThatNobodyReceivesIsNamed) {
  const JobResult result = play(2, "send_in_vain");
  EXPECT_EQ(result.exit_code, 3);
  expect_contains(result, "it ended while rank 0 has 1 more messages for it");
}

TEST_F(MpiEnding, ARankThatComputesForTooLongIsNamedByAll) {
  const JobResult result = play(5, "compute");
  EXPECT_EQ(result.exit_code, 3);
  expect_contains(result, "waited 1000 ms in vain to receive 8 bytes from rank ");
  expect_contains(result, "the waits end at rank 3, which waits for no other rank");
}

TEST_F(MpiEnding, ARankThatIsMissingInASumIsNamedByAll) {
  const JobResult result = play(5, "compute_before_sum");
  EXPECT_EQ(result.exit_code, 3);
  expect_contains(result, "waited 1000 ms in vain to ");
  expect_contains(result, "the waits end at rank 3, which waits for no other rank");
}

TEST_F(MpiEnding, AnExceptionInACollectiveEndsAllWithItsReason) {
  const JobResult result = play(4, "throw_in_collective");
  EXPECT_EQ(result.exit_code, 3);
  expect_contains(result, "[op] rank 1/4: thrown between");
  for (int rank : {0, 2, 3})
    expect_contains(
        result,
        fmt::format("[comm] rank {}/4: rank 1 failed: an all-reduce was left unfinished", rank));
}

TEST_F(MpiEnding, CountsThatDifferInASumAreNamed) {
  for (const char* counts_of_2 : {"999", "100000"}) {
    const JobResult result = play(4, "mismatch_in_collective", {"1000", counts_of_2});
    EXPECT_EQ(result.exit_code, 3);
    expect_contains(result, "bytes at the receiver; both must post the same messages");
  }
}

TEST_F(MpiEnding, AWorldMayFollowOneThatFailedInGoodOrder) {
  const JobResult result = play(4, "fail_and_go_on");
  EXPECT_EQ(result.exit_code, 0) << result.errors;
}

TEST_F(MpiEnding, AnExitInsideAWorldEndsTheJob) { EXPECT_EQ(play(3, "exit_inside").exit_code, 3); }

TEST_F(MpiEnding, ACircleOfWaitsIsRecognised) {
  const JobResult result = play(3, "circle");
  EXPECT_EQ(result.exit_code, 3);
  expect_contains(result, "ranks 0, 1, 2 wait for each other in a cycle");
}

TEST_F(MpiEnding, MemoryMayBeFreedAfterAnAbort) {
  constexpr uint64_t kSeed = 5;
  std::mt19937_64 random(kSeed);
  for (int round = 0; round < 4; ++round) {
    const std::string culprit = std::to_string(random() % 4);
    const std::string moment_us = std::to_string(random() % 3'000);
    SCOPED_TRACE(fmt::format("seed {}, rank {} after {} us", kSeed, culprit, moment_us));
    const JobResult result = play(4, "abort", {culprit, moment_us});
    EXPECT_EQ(result.exit_code, 3);
    expect_contains(result, fmt::format("rank {} failed: had enough", culprit));
    expect_without(result, "signal");
  }
}

TEST_F(MpiEnding, WhatCannotBeLaunchedIsNamed) {
  EXPECT_THROW(mpi::launch(0, {"true"}), InvalidInput);
  EXPECT_THROW(mpi::launch(1, {}), InvalidInput);
  mpi::LaunchOptions options;
  options.mpirun = "there-is-no-such-mpirun";
  EXPECT_THROW(mpi::launch(1, {"true"}, options), InvalidInput);
  EXPECT_EQ(mpi::launch(2, {"true"}), 3) << "processes that are not ranks";
  EXPECT_EQ(play(2, "exit", {"0"}).exit_code, 0) << "and the next launch is not disturbed";
}

}  // namespace
}  // namespace tessera::ending_test
