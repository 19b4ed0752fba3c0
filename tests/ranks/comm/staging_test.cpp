// Messages of devices over transports of the host's memory, and through all other decorators.

#include "tessera/base/error.h"
#include "tessera/comm/decorators.h"
#include "tessera/comm/forwarding.h"
#include "tessera/comm/threads/threads.h"
#include "tests/ranks/comm/device_traffic.h"
#include "tests/ranks/comm/watched.h"

namespace tessera::staging_test {
namespace {

class Staging : public WatchedTest {};

using World = std::vector<std::unique_ptr<Transport>>;

/// As MPI: takes no memory of a device, and collects what it is given.
class HostOnly final : public ForwardingTransport {
 public:
  using ForwardingTransport::ForwardingTransport;

  Ticket start(const Batch& batch) override {
    EXPECT_EQ(batch.queue, nullptr);
    return inner_->start(batch);
  }
};

World staged_world(int size) {
  World world = threads::create(size);
  for (auto& transport : world)
    transport = staging(std::make_unique<HostOnly>(std::move(transport)));
  return world;
}

TEST_F(Staging, RandomMessagesArriveInWorldsOfAnySize) {
  for (int size = 1; size <= 8; ++size)
    for (uint64_t seed = 11; seed <= 13; ++seed) {
      SCOPED_TRACE(testing::Message() << size << " ranks, seed " << seed);
      threads::run_ranks(staged_world(size),
                         [seed](Transport& transport) { DeviceTraffic(transport, seed).play(20); });
    }
}

TEST_F(Staging, CollectivesHaveTheBitsOfTheHostsOnes) {
  for (const Members& members :
       std::vector<Members>{{3}, {0, 1}, {0, 3, 5}, {0, 1, 2, 3, 4}, {0, 1, 2, 3, 4, 5, 6, 7}})
    for (int64_t count : {0, 1, 5, 513, 20'011})
      threads::run_ranks(staged_world(8), [&](Transport& transport) {
        play_device_collectives(transport, members, count);
      });
}

/// A step of three batches, which are outstanding together and finished in another order.
void play_step(Transport& transport, FakeQueue& queue, std::vector<char>& sent,
               std::vector<char>& received) {
  const int other = 1 - transport.rank();
  std::vector<Ticket> tickets;
  int64_t begin = 0;
  for (int64_t bytes : {100, 9000, 90}) {
    Batch batch;
    batch.queue = &queue;
    batch.sends.push_back({other, sent.data() + begin, bytes});
    batch.receives.push_back({other, received.data() + begin, bytes});
    tickets.push_back(transport.start(batch));
    begin += bytes;
  }
  for (int n : {1, 2, 0}) transport.finish(tickets[n]);
}

TEST_F(Staging, TakesNoMemoryAfterTheFirstStep) {
  threads::run_ranks(staged_world(2), [](Transport& transport) {
    FakeQueue queue(transport.rank());
    std::vector<char> sent(9190), received(9190);
    for (int step = 0; step < 20; ++step) {
      const auto numbers = pattern(message_id(transport.rank(), 0, step), 9190);
      const auto expected = pattern(message_id(1 - transport.rank(), 0, step), 9190);
      queue.then([&] { fill_with(numbers, &sent); });
      play_step(transport, queue, sent, received);
      queue.then([&] { EXPECT_EQ(received, expected) << "step " << step; });
      queue.drain();
      EXPECT_EQ(queue.num_blocks(), 3);
    }
  });
}

/// The host may use a block again only when the device has read it.
TEST_F(Staging, WhatIsOnlyReceivedWaitsForTheCopyOfTheLastOne) {
  threads::run_ranks(staged_world(2), [](Transport& transport) {
    FakeQueue queue(transport.rank());
    std::vector<std::vector<char>> received(200, std::vector<char>(50));
    for (auto& target : received) {
      auto sent = pattern(static_cast<uint64_t>(&target - received.data()), 50);
      Batch batch;
      batch.queue = &queue;
      if (transport.rank() == 0) batch.sends.push_back({1, sent.data(), 50});
      if (transport.rank() == 1) batch.receives.push_back({0, target.data(), 50});
      transport.finish(transport.start(batch));
    }
    queue.drain();
    EXPECT_EQ(queue.num_blocks(), 1);
    if (transport.rank() == 0) return;
    for (size_t n = 0; n < received.size(); ++n) EXPECT_EQ(received[n], pattern(n, 50)) << n;
  });
}

TEST_F(Staging, ATransportMayDieWithBatchesOutstanding) {
  World world = staged_world(2);
  FakeQueue queue(1);
  std::vector<char> data(100);
  Batch batch;
  batch.queue = &queue;
  batch.receives.push_back({1, data.data(), 100});
  world[0]->start(batch);
  world[0].reset();
  try {
    world[1]->start({.sends = {{0, data.data(), 100}}, .receives = {}});
    ADD_FAILURE() << "nothing was thrown";
  } catch (const CommError& error) {
    EXPECT_NE(std::string(error.what()).find("unfinished"), std::string::npos) << error.what();
  }
}

/// The order of decorators around a device's messages is nobody's concern.
TEST_F(Staging, DecoratorsKeepTheQueue) {
  const Delay delay{std::chrono::microseconds(50), 1e9};
  for (int variant = 0; variant < 4; ++variant)
    for (int size : {1, 2, 5}) {
      SCOPED_TRACE(testing::Message() << "variant " << variant << ", " << size << " ranks");
      std::vector<TransportCounters> counters(size);
      World world = variant % 2 ? staged_world(size) : threads::create(size);
      for (int rank = 0; rank < size; ++rank) {
        auto& transport = world[rank];
        if (variant == 3) transport = staging(delaying(std::move(transport), delay));
        if (variant < 3) transport = delaying(std::move(transport), delay);
        transport = failing(std::move(transport), int64_t{1} << 40, Failure::kThrow);
        transport = recording(std::move(transport), &counters[rank]);
      }
      threads::run_ranks(world, [variant](Transport& transport) {
        DeviceTraffic(transport, 20 + variant).play(10);
      });
    }
}

}  // namespace
}  // namespace tessera::staging_test
