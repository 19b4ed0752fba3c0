// What run_ranks makes of errors: the first one wins, keeps its kind, and names its rank.

#include <new>
#include <stdexcept>
#include <typeinfo>

#include "tessera/base/error.h"
#include "tessera/comm/collectives.h"
#include "tessera/comm/threads/first_error.h"
#include "tessera/comm/threads/threads.h"
#include "tests/ranks/comm/watched.h"

namespace tessera::run_ranks_test {
namespace {

class RunRanks : public WatchedTest {};

using threads::run_ranks;

/// Rank 1 of 3 throws `error` while the others wait for it. Returns the message of what run_ranks
/// throws, which must be a `Kind` and nothing more special.
template <class Kind, class Thrown>
std::string message_of(const Thrown& error) {
  try {
    run_ranks(3, [&](Transport& transport) {
      if (transport.rank() == 1) throw error;
      barrier(transport, {0, 1, 2});
    });
  } catch (const std::exception& caught) {
    EXPECT_EQ(typeid(caught), typeid(Kind)) << caught.what();
    return caught.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

TEST_F(RunRanks, KeepsTheKindAndNamesTheRank) {
  EXPECT_EQ(message_of<InvalidInput>(InvalidInput("[op] bad")), "[op] rank 1/3: bad");
  EXPECT_EQ(message_of<Unsupported>(Unsupported("[op] bad")), "[op] rank 1/3: bad");
  EXPECT_EQ(message_of<CommError>(CommError("[op] bad")), "[op] rank 1/3: bad");
  EXPECT_EQ(message_of<OutOfMemory>(OutOfMemory("[op] bad")), "[op] rank 1/3: bad");
  EXPECT_EQ(message_of<InternalError>(InternalError("[op] bad")), "[op] rank 1/3: bad");
  EXPECT_EQ(message_of<Error>(Error("bad")), "rank 1/3: bad");
  EXPECT_EQ(message_of<InternalError>(std::runtime_error("bad")), "rank 1/3: bad");
  EXPECT_EQ(message_of<OutOfMemory>(std::bad_alloc()).find("rank 1/3: "), 0u);
  EXPECT_EQ(message_of<InternalError>(42).find("rank 1/3: "), 0u);
}

TEST_F(RunRanks, PutsTheRankAfterThePlaceAndOnlyOnce) {
  using threads::with_rank;
  EXPECT_EQ(with_rank("[a b] text", 3, 8), "[a b] rank 3/8: text");
  EXPECT_EQ(with_rank("[a b] rank 3/8: text", 3, 8), "[a b] rank 3/8: text");
  EXPECT_EQ(with_rank("[a b] rank 2/8: text", 3, 8), "[a b] rank 3/8: rank 2/8: text");
  EXPECT_EQ(with_rank("rank 3/8: text", 3, 8), "rank 3/8: text");
  EXPECT_EQ(with_rank("[no end", 3, 8), "rank 3/8: [no end");
  EXPECT_EQ(with_rank("", 0, 1), "rank 0/1: ");
}

TEST_F(RunRanks, TheFirstFailureInTimeWins) {
  // Rank 2 fails; rank 0 answers the CommError with an error of its own, later.
  try {
    run_ranks(3, [](Transport& transport) {
      if (transport.rank() == 2) throw_error<InvalidInput>("[op] the cause");
      try {
        barrier(transport, {0, 1, 2});
      } catch (const CommError& e) {
        EXPECT_NE(std::string(e.what()).find("rank 2 failed: [op] the cause"), std::string::npos)
            << e.what();
        if (transport.rank() == 0) throw std::logic_error("a consequence");
        throw;
      }
    });
    FAIL();
  } catch (const InvalidInput& e) {
    EXPECT_STREQ(e.what(), "[op] rank 2/3: the cause");
  }
}

TEST_F(RunRanks, AReasonGivenByHandReachesAll) {
  try {
    run_ranks(2, [](Transport& transport) {
      if (transport.rank() == 1) return transport.abort("had enough");
      barrier(transport, {0, 1});
    });
    FAIL();
  } catch (const CommError& e) {
    EXPECT_STREQ(e.what(), "[comm] rank 0/2: rank 1 failed: had enough");
  }
}

TEST_F(RunRanks, RunsAgainOverTheSameWorld) {
  auto world = threads::create(3);
  for (int round = 0; round < 3; ++round)
    run_ranks(world, [](Transport& transport) { barrier(transport, {0, 1, 2}); });
}

}  // namespace
}  // namespace tessera::run_ranks_test
