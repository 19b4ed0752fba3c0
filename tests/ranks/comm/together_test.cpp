// What fails on one rank for a reason that the user can mend fails on all, with that reason.

#include "tessera/comm/together.h"

#include <fmt/format.h>

#include <set>

#include "tessera/base/error.h"
#include "tessera/comm/threads/threads.h"
#include "tests/ranks/comm/watched.h"

namespace tessera::together_test {
namespace {

class Together : public WatchedTest {};

/// What each of five ranks throws where those in `failing` do.
std::vector<std::string> messages(const std::set<int>& failing) {
  std::vector<std::string> heard(5);
  threads::run_ranks(5, [&](Transport& transport) {
    const int rank = transport.rank();
    try {
      do_together(transport, [&] {
        if (failing.contains(rank))
          throw_error<InvalidInput>("rank {} cannot write{}", rank, std::string(rank, '!'));
      });
    } catch (const InvalidInput& error) {
      heard[rank] = error.what();
    }
  });
  return heard;
}

TEST_F(Together, AllThrowTheReasonOfTheFirstThatFails) {
  EXPECT_EQ(messages({}), std::vector<std::string>(5));
  EXPECT_EQ(messages({0}), std::vector<std::string>(5, "rank 0 cannot write"));
  EXPECT_EQ(messages({4}), std::vector<std::string>(5, "rank 4 cannot write!!!!"));
  EXPECT_EQ(messages({1, 2, 3}), std::vector<std::string>(5, "rank 1 cannot write!"));
}

TEST_F(Together, AllHearTheTextOfTheFirstRank) {
  threads::run_ranks(3, [](Transport& transport) {
    const bool is_first = transport.rank() == 0;
    EXPECT_EQ(broadcast_text(transport, is_first ? "a longer text" : "own"), "a longer text");
    EXPECT_EQ(broadcast_text(transport, is_first ? "" : "own"), "");
  });
}

}  // namespace
}  // namespace tessera::together_test
