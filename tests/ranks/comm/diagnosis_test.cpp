// Who is to blame when nothing moves: the end of the chain of waits.

#include "tessera/comm/threads/diagnosis.h"

#include <gtest/gtest.h>

namespace tessera::threads {
namespace {

TEST(Diagnosis, FollowsTheWaitsToTheirEnd) {
  const WaitGraph ring_with_one_stuck = {{1}, {2}, {3}, {}};
  EXPECT_EQ(
      explain_stall(ring_with_one_stuck, 0),
      "the waits end at rank 3, which waits for no other rank and may be stuck, slow or gone");
}

TEST(Diagnosis, NamesAllEnds) {
  EXPECT_NE(explain_stall({{1, 2, 1}, {3}, {}, {}}, 0).find("the waits end at ranks 2, 3,"),
            std::string::npos);
}

TEST(Diagnosis, ARankThatWaitsForItselfIsAnEnd) {
  EXPECT_NE(explain_stall({{1}, {1}}, 0).find("rank 1,"), std::string::npos);
}

TEST(Diagnosis, IgnoresRanksOutOfReach) {
  EXPECT_EQ(explain_stall({{1}, {}, {3}, {}}, 0).find('3'), std::string::npos);
}

TEST(Diagnosis, RecognisesACircle) {
  EXPECT_EQ(explain_stall({{1}, {2}, {0}, {}}, 0),
            "ranks 0, 1, 2 wait for each other in a cycle: their messages differ in order");
}

TEST(Diagnosis, ShortensLongLists) {
  WaitGraph all_for_one(40);
  for (int rank = 1; rank < 40; ++rank) all_for_one[0].push_back(rank);
  EXPECT_NE(explain_stall(all_for_one, 0).find("16 and 23 more"), std::string::npos);
}

}  // namespace
}  // namespace tessera::threads
