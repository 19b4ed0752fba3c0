// Transports that wrap another one. Times are looked at from below only: a busy machine makes any
// wait longer, none shorter.

#include "tessera/comm/decorators.h"

#include <atomic>

#include "tessera/base/error.h"
#include "tessera/comm/threads/threads.h"
#include "tests/ranks/comm/watched.h"

namespace tessera::decorators_test {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

class Decorators : public WatchedTest {};

using World = std::vector<std::unique_ptr<Transport>>;

World recorded_world(int size, std::vector<TransportCounters>& counters) {
  World world = threads::create(size);
  counters.assign(size, {});
  for (int rank = 0; rank < size; ++rank)
    world[rank] = recording(std::move(world[rank]), &counters[rank]);
  return world;
}

/// Both ranks of a pair send each other `sent`.
Batch swap_with(int other, std::vector<char>& sent, std::vector<char>& received) {
  Batch batch;
  batch.sends.push_back({other, sent.data(), static_cast<int64_t>(sent.size())});
  batch.receives.push_back({other, received.data(), static_cast<int64_t>(received.size())});
  return batch;
}

TEST_F(Decorators, RecordingCountsWhatLeavesTheRank) {
  std::vector<TransportCounters> counters;
  World world = recorded_world(3, counters);
  threads::run_ranks(world, [](Transport& transport) {
    char sent[100], received[100];
    Batch batch;
    batch.sends = {{1, sent, 10}, {2, sent, 20}, {0, sent, 30}, {1, sent, 0}};
    if (transport.rank() == 1) batch.sends = {{0, sent, 7}};
    if (transport.rank() == 2) batch.sends = {};
    if (transport.rank() == 0) batch.receives = {{0, received, 30}, {1, received + 50, 7}};
    if (transport.rank() == 1) batch.receives = {{0, received, 10}, {0, received, 0}};
    if (transport.rank() == 2) batch.receives = {{0, received, 20}};
    transport.finish(transport.start(batch));
  });
  EXPECT_EQ(counters[0].messages, 2);
  EXPECT_EQ(counters[0].bytes_sent, 30);
  EXPECT_EQ(counters[1].messages, 1);
  EXPECT_EQ(counters[1].bytes_sent, 7);
  EXPECT_EQ(counters[2].messages, 0);
  EXPECT_EQ(counters[2].bytes_sent, 0);
}

TEST_F(Decorators, RecordingMeasuresTheWait) {
  World world = threads::create(2);
  std::vector<TransportCounters> counters(2);
  const Delay delay{std::chrono::microseconds(100'000), 0};
  for (int rank = 0; rank < 2; ++rank)
    world[rank] = recording(delaying(std::move(world[rank]), delay), &counters[rank]);
  threads::run_ranks(world, [&](Transport& transport) {
    std::vector<char> sent(8), received(8);
    const Clock::time_point begin = Clock::now();
    transport.finish(transport.start(swap_with(1 - transport.rank(), sent, received)));
    const double all = std::chrono::duration<double>(Clock::now() - begin).count();
    EXPECT_GT(counters[transport.rank()].blocked_seconds, 0);
    EXPECT_LE(counters[transport.rank()].blocked_seconds, all);
  });
}

TEST_F(Decorators, DelayingHoldsABatchBackByLatencyAndBandwidth) {
  World world = threads::create(2);
  for (auto& transport : world)
    transport = delaying(std::move(transport), {std::chrono::microseconds(20'000), 1e6});
  threads::run_ranks(world, [](Transport& transport) {
    std::vector<char> sent(30'000), received(30'000);
    const Clock::time_point begin = Clock::now();
    transport.finish(transport.start(swap_with(1 - transport.rank(), sent, received)));
    EXPECT_GE(Clock::now() - begin, milliseconds(20 + 30));
  });
}

TEST_F(Decorators, WorkBetweenStartAndFinishIsNotBlockedTime) {
  World world = threads::create(2);
  std::vector<TransportCounters> counters(2);
  const Delay delay{std::chrono::microseconds(60'000), 0};
  for (int rank = 0; rank < 2; ++rank)
    world[rank] = recording(delaying(std::move(world[rank]), delay), &counters[rank]);
  threads::run_ranks(world, [&](Transport& transport) {
    std::vector<char> sent(8), received(8);
    const Clock::time_point begin = Clock::now();
    const Ticket ticket = transport.start(swap_with(1 - transport.rank(), sent, received));
    std::this_thread::sleep_for(milliseconds(40));  // the work
    transport.finish(ticket);
    const std::chrono::duration<double> all = Clock::now() - begin;
    EXPECT_GE(all, milliseconds(60));  // the whole delay has passed, in work and wait together
    EXPECT_LE(counters[transport.rank()].blocked_seconds, all.count() - 0.040);
  });
}

/// A message cannot arrive sooner because its receiver has waited for long.
TEST_F(Decorators, DelayingCountsFromTheLastThatPosts) {
  World world = threads::create(2);
  for (auto& transport : world)
    transport = delaying(std::move(transport), {std::chrono::microseconds(50'000), 0});
  Clock::time_point posted;
  threads::run_ranks(world, [&](Transport& transport) {
    std::vector<char> sent(8), received(8);
    if (transport.rank() == 0) std::this_thread::sleep_for(milliseconds(60));
    if (transport.rank() == 0) posted = Clock::now();
    transport.finish(transport.start(swap_with(1 - transport.rank(), sent, received)));
    EXPECT_GE(Clock::now(), posted + milliseconds(50));
  });
}

TEST_F(Decorators, DelayingCountsWhatIsLeftWhenARankWaits) {
  World world = threads::create(2);
  std::vector<DelayCounters> counters(2);
  for (int rank = 0; rank < 2; ++rank)
    world[rank] =
        delaying(std::move(world[rank]), {std::chrono::microseconds(500'000), 0}, &counters[rank]);
  std::atomic<int> posted = 0;
  threads::run_ranks(world, [&](Transport& transport) {
    const DelayCounters& own = counters[transport.rank()];
    std::vector<char> sent(8), received(8);
    const Batch batch = swap_with(1 - transport.rank(), sent, received);
    transport.finish(transport.start(batch));
    EXPECT_DOUBLE_EQ(own.transfer_seconds, 0.5);
    EXPECT_GT(own.exposed_seconds, 0);
    EXPECT_LE(own.exposed_seconds, 0.5);
    const double before = own.exposed_seconds;
    const Ticket ticket = transport.start(batch);
    ++posted;
    while (posted < 2) std::this_thread::yield();
    std::this_thread::sleep_for(milliseconds(500));  // the work
    transport.finish(ticket);
    EXPECT_DOUBLE_EQ(own.transfer_seconds, 1.0);
    EXPECT_EQ(own.exposed_seconds, before);
  });
}

TEST_F(Decorators, DelayingLetsMessagesToOneselfPass) {
  World world = threads::create(1);
  // A delay of hours: the watchdog would notice it.
  world[0] = delaying(std::move(world[0]), {std::chrono::hours(5), 0});
  threads::run_ranks(world, [](Transport& transport) {
    std::vector<char> sent(8, 'a'), received(8);
    transport.finish(transport.start(swap_with(0, sent, received)));
    EXPECT_EQ(received, sent);
  });
  EXPECT_THROW(delaying(std::move(world[0]), {std::chrono::microseconds(-1), 0}), InvalidInput);
}

TEST_F(Decorators, FailingThrowsAfterItsGoodBatches) {
  World world = threads::create(1);
  world[0] = failing(std::move(world[0]), 2, Failure::kThrow);
  world[0]->finish(world[0]->start({}));
  world[0]->finish(world[0]->start({}));
  EXPECT_THROW(world[0]->start({}), CommError);
}

}  // namespace
}  // namespace tessera::decorators_test
