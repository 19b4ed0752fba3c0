#include "tessera/proof/patience.h"

#include <atomic>
#include <thread>

#include "tessera/base/error.h"
#include "tessera/comm/threads/threads.h"
#include "tests/ranks/comm/watched.h"

namespace tessera::patience_test {
namespace {

using std::chrono::milliseconds;

class Patience : public WatchedTest {};

/// Three times as long as a wait may take.
TEST_F(Patience, WorkMayTakeLongerThanAWait) {
  threads::Options options;
  options.timeout = milliseconds(1000);
  std::atomic<int> runs = 0;
  threads::run_ranks(
      3,
      [&](Transport& transport) {
        while_others_wait(transport, milliseconds(50), [&] {
          ++runs;
          std::this_thread::sleep_for(milliseconds(3000));
        });
        EXPECT_EQ(runs, 1) << "rank " << transport.rank() << " did not wait";
      },
      options);
}

TEST_F(Patience, AFailureEndsAll) {
  std::atomic<int> ended = 0;
  const auto run = [&] {
    threads::run_ranks(2, [&](Transport& transport) {
      try {
        while_others_wait(transport, milliseconds(50),
                          [] { throw_error<OutOfMemory>("[memory] none left"); });
      } catch (const Error&) {
        ++ended;
        throw;
      }
    });
  };
  EXPECT_THROW(run(), OutOfMemory);
  EXPECT_EQ(ended, 2);
}

TEST_F(Patience, OneRankAloneJustWorks) {
  bool done = false;
  threads::run_ranks(1, [&](Transport& transport) {
    while_others_wait(transport, milliseconds(50), [&] { done = true; });
  });
  EXPECT_TRUE(done);
}

}  // namespace
}  // namespace tessera::patience_test
