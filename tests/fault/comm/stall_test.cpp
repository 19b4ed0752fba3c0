// A rank that stops without a word: the others run out of time and say where the waits end.

#include <latch>
#include <optional>

#include "tessera/comm/decorators.h"
#include "tests/fault/comm/outcome.h"
#include "tests/ranks/comm/watched.h"

namespace tessera::stall_test {
namespace {

class Stall : public WatchedTest {
 protected:
  static constexpr threads::Options kShort{std::chrono::milliseconds(300)};
};

/// Receives from the previous rank, then sends to the next: a chain of waits.
void pass_along_ring(Transport& transport) {
  const int rank = transport.rank(), size = transport.size();
  int64_t sent = rank, received = -1;
  Batch batch;
  batch.sends.push_back({(rank + 1) % size, &sent, sizeof(sent)});
  batch.receives.push_back({(rank + size - 1) % size, &received, sizeof(received)});
  transport.finish(transport.start(batch));
  EXPECT_EQ(received, (rank + size - 1) % size);
}

/// Counts down when its rank ends, so that the stuck rank can be stuck for just as long as needed.
class Departure {
 public:
  explicit Departure(std::latch& others) : others_(others) {}
  ~Departure() { others_.count_down(); }

 private:
  std::latch& others_;
};

TEST_F(Stall, AStalledTransportIsNamedByAll) {
  for (int64_t good_batches : {0, 1, 5}) {
    World world = threads::create(4, kShort);
    world[2] = failing(std::move(world[2]), good_batches, Failure::kStall);
    const Outcome outcome = outcome_of(world, [](Transport& transport) {
      for (int step = 0; step < 1000; ++step) pass_along_ring(transport);
    });
    expect_all_others_say(outcome, 2, "the waits end at rank 2,");
    EXPECT_FALSE(outcome.comm_errors[2].empty());
    expect_contains(outcome.rethrown, "waited 300 ms in vain");
    expect_contains(outcome.rethrown, "raise the timeout");
  }
}

TEST_F(Stall, ARankThatComputesForTooLongIsNamedByAll) {
  std::latch others(4);
  const Outcome outcome = outcome_of(5, kShort, [&](Transport& transport) {
    pass_along_ring(transport);
    std::optional<Departure> departure;
    if (transport.rank() == 3)
      others.wait();
    else
      departure.emplace(others);
    for (int step = 0; step < 3; ++step) pass_along_ring(transport);
  });
  expect_all_others_say(outcome, 3, "the waits end at rank 3, which waits for no other rank");
  // It comes back too late and learns that the others are gone.
  EXPECT_FALSE(outcome.comm_errors[3].empty());
}

TEST_F(Stall, TheMessageNamesPeersDirectionsAndBytes) {
  std::latch others(1);
  const Outcome outcome = outcome_of(3, kShort, [&](Transport& transport) {
    if (transport.rank() != 0) return others.wait();
    Departure departure(others);
    char data[64];
    Batch batch;
    batch.sends.push_back({1, data, 24});
    batch.receives.push_back({2, data + 32, 17});
    transport.finish(transport.start(batch));
  });
  expect_contains(outcome.comm_errors[0], "[comm] rank 0/3: waited 300 ms in vain");
  expect_contains(outcome.comm_errors[0], "to send 24 bytes to rank 1");
  expect_contains(outcome.comm_errors[0], "to receive 17 bytes from rank 2");
  expect_contains(outcome.comm_errors[0], "the waits end at ranks 1, 2,");
  EXPECT_EQ(outcome.rethrown, outcome.comm_errors[0]);
}

TEST_F(Stall, ALongListOfMessagesIsCut) {
  std::latch others(1);
  const Outcome outcome = outcome_of(2, kShort, [&](Transport& transport) {
    if (transport.rank() == 1) return others.wait();
    Departure departure(others);
    char data[20];
    Batch batch;
    for (char& byte : data) batch.receives.push_back({1, &byte, 1});
    transport.finish(transport.start(batch));
  });
  expect_contains(outcome.comm_errors[0], "from rank 1 and 12 more;");
}

TEST_F(Stall, ACircleOfWaitsIsRecognised) {
  // Everyone first waits for its receive and would send after that.
  const Outcome outcome = outcome_of(3, kShort, [](Transport& transport) {
    int value = 0;
    Batch batch;
    batch.receives.push_back({(transport.rank() + 2) % 3, &value, sizeof(value)});
    transport.finish(transport.start(batch));
  });
  for (int rank = 0; rank < 3; ++rank)
    expect_contains(outcome.comm_errors[rank], "ranks 0, 1, 2 wait for each other in a cycle");
}

}  // namespace
}  // namespace tessera::stall_test
