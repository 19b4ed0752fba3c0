// Started by CTest, this program runs the tests, which launch it again as ranks.

#include <gtest/gtest.h>

#include "tessera/comm/mpi/mpi.h"
#include "tests/fault/mpi/job.h"

int main(int argc, char** argv) {
  using namespace tessera;
  constexpr int kSkipped = 77;  // CTest counts it as a skip
  if (!mpi::available()) return kSkipped;
  if (mpi::launched()) return play_as_rank(argv[1], {argv + 2, argv + argc});
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
