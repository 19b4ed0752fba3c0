// Sizes that differ in a pair of messages: both sides learn both sizes, whoever comes first.

#include <thread>

#include "tessera/comm/collectives.h"
#include "tests/fault/comm/outcome.h"
#include "tests/ranks/comm/watched.h"

namespace tessera::mismatch_test {
namespace {

class Mismatch : public WatchedTest {
 protected:
  static constexpr threads::Options kLong{std::chrono::minutes(10)};
};

TEST_F(Mismatch, AllRanksReadBothSizes) {
  for (int late : {0, 1}) {
    const Outcome outcome = outcome_of(3, kLong, [late](Transport& transport) {
      char data[64] = {};
      Batch batch;
      if (transport.rank() == late) std::this_thread::sleep_for(std::chrono::milliseconds(30));
      if (transport.rank() == 0) batch.sends.push_back({1, data, 24});
      if (transport.rank() == 1) batch.receives.push_back({0, data, 40});
      if (transport.rank() == 2) batch.receives.push_back({0, data, 8});
      transport.finish(transport.start(batch));
    });
    expect_all_others_say(
        outcome, -1,
        "the message from rank 0 to rank 1 has 24 bytes at the sender and 40 bytes "
        "at the receiver");
    expect_contains(outcome.rethrown, "24 bytes at the sender");
  }
}

TEST_F(Mismatch, OneRankWithAnotherCountEndsTheSum) {
  const Outcome outcome = outcome_of(4, kLong, [](Transport& transport) {
    const int64_t count = transport.rank() == 2 ? 2000 : 2004;
    std::vector<float> data(count, 1.0f);
    AllReduce reduce(transport, {0, 1, 2, 3}, data.data(), count, SumType::kFloat32);
    reduce.finish();
  });
  expect_all_others_say(outcome, -1, "rank 2");
  // The first round of four members moves half of the elements.
  expect_contains(outcome.rethrown, "4000 bytes");
  expect_contains(outcome.rethrown, "4008 bytes");
}

TEST_F(Mismatch, AWrongSizeToOneselfIsFoundToo) {
  const Outcome outcome = outcome_of(1, kLong, [](Transport& transport) {
    char data[8];
    Batch batch;
    batch.sends.push_back({0, data, 3});
    batch.receives.push_back({0, data + 4, 4});
    transport.finish(transport.start(batch));
  });
  expect_contains(outcome.rethrown, "from rank 0 to rank 0 has 3 bytes at the sender and 4 bytes");
}

}  // namespace
}  // namespace tessera::mismatch_test
