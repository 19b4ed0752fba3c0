// Ranks that fail while copies between devices are queued: nobody's memory is touched any more, and
// every rank ends. The queues run late (fake_queue.h).

#include <algorithm>
#include <list>
#include <random>
#include <thread>

#include "tessera/comm/collectives.h"
#include "tessera/comm/decorators.h"
#include "tests/fault/comm/outcome.h"
#include "tests/ranks/comm/fake_queue.h"
#include "tests/ranks/comm/watched.h"

namespace tessera::device_fault_test {
namespace {

class DeviceFault : public WatchedTest {};

constexpr int64_t kBytes = 4000;

/// Memory of one rank that swaps with all others, and that nobody may read or write once it is
/// left: it is filled with another letter then, and looked at much later.
struct Memory {
  explicit Memory(int size) : sent(size * kBytes, 's'), received(size * kBytes, 'r') {}

  Batch swap_with_all(const Transport& transport, DeviceQueue* queue) {
    Batch batch;
    batch.queue = queue;
    for (int peer = 0; peer < transport.size(); ++peer) {
      batch.sends.push_back({peer, sent.data() + peer * kBytes, kBytes});
      batch.receives.push_back({peer, received.data() + peer * kBytes, kBytes});
    }
    return batch;
  }

  void leave() {
    std::fill(sent.begin(), sent.end(), 'x');
    std::fill(received.begin(), received.end(), 'x');
  }
  /// After leave() and the end of all queues.
  bool was_touched() const {
    return std::count(received.begin(), received.end(), 'x') != std::ssize(received);
  }

  std::vector<char> sent, received;
};

/// What one rank has; it outlives all ranks, as a device outlives what is queued on it.
struct RankMemory {
  RankMemory(int size, uint64_t seed) : memory(size), queue(seed) {}

  Memory memory;
  FakeQueue queue;
};

struct Devices {
  Devices(int size, uint64_t seed) {
    for (int rank = 0; rank < size; ++rank) ranks.emplace_back(size, seed * 16 + rank);
  }
  RankMemory& of(const Transport& transport) { return *std::next(ranks.begin(), transport.rank()); }
  /// Nobody has written what was left, after all that was queued has run.
  void expect_untouched() {
    for (RankMemory& rank : ranks) rank.queue.release();
    for (RankMemory& rank : ranks) rank.queue.drain();
    for (RankMemory& rank : ranks) EXPECT_FALSE(rank.memory.was_touched());
  }

  std::list<RankMemory> ranks;
};

/// Threads, or staging over them.
World world_of(int size, bool staged) {
  World world = threads::create(size);
  if (staged)
    for (auto& transport : world) transport = staging(std::move(transport));
  return world;
}

TEST_F(DeviceFault, MemoryIsFreeAfterAnAbort) {
  for (int round = 0; round < 120; ++round) {
    SCOPED_TRACE(testing::Message() << "round " << round);
    const int size = 2 + round % 4, culprit = round % size;
    Devices devices(size, round);
    const Outcome outcome = outcome_of(world_of(size, round % 3 == 0), [&](Transport& transport) {
      std::mt19937 random(round * 4 + transport.rank());
      auto& [memory, queue] = devices.of(transport);
      try {
        for (int step = 0;; ++step) {
          queue.then([&memory = memory] { EXPECT_EQ(memory.sent.front(), 's'); });
          const Ticket ticket = transport.start(memory.swap_with_all(transport, &queue));
          if (transport.rank() == culprit && step == round % 5) {
            for (unsigned n = random() % 8; n > 0; --n) std::this_thread::yield();
            transport.abort("enough");
          }
          transport.finish(ticket);
          queue.then([&memory = memory] {
            EXPECT_EQ(std::count(memory.received.begin(), memory.received.end(), 's'),
                      std::ssize(memory.received));
            std::fill(memory.received.begin(), memory.received.end(), 'r');
          });
        }
      } catch (const CommError&) {
        queue.drain();  // what the rank itself has queued
        memory.leave();
        throw;
      }
    });
    expect_contains(outcome.rethrown, "enough");
    devices.expect_untouched();
  }
}

/// The copies are queued on rank 1, which is late: rank 0 may not leave before they have run.
TEST_F(DeviceFault, AnAbortWaitsForCopiesInThePeersQueue) {
  Devices devices(2, 1);
  World world = threads::create(2);
  auto& [memory0, queue0] = devices.of(*world[0]);
  auto& [memory1, queue1] = devices.of(*world[1]);
  queue1.hold();
  world[0]->start(memory0.swap_with_all(*world[0], &queue0));
  world[1]->start(memory1.swap_with_all(*world[1], &queue1));
  std::jthread later([&queue = queue1] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    queue.release();
  });
  world[0]->abort("enough");
  EXPECT_EQ(memory0.received.back(), 's') << "it has arrived";
  memory0.leave();
  world[1]->abort("me too");
  EXPECT_EQ(memory1.received.front(), 's');
  memory1.leave();
  devices.expect_untouched();
}

TEST_F(DeviceFault, ALostDeviceEndsAllRanks) {
  for (int staged = 0; staged < 2; ++staged)
    for (int64_t copies = 0; copies < 12; ++copies) {
      SCOPED_TRACE(testing::Message() << copies << " copies, staged " << staged);
      Devices devices(3, copies);
      devices.ranks.front().queue.lose_after(copies);
      const Outcome outcome = outcome_of(world_of(3, staged == 1), [&](Transport& transport) {
        auto& [memory, queue] = devices.of(transport);
        try {
          for (;;) transport.finish(transport.start(memory.swap_with_all(transport, &queue)));
        } catch (const std::exception& error) {
          transport.abort(error.what());
          queue.drain();
          memory.leave();
          throw;
        }
      });
      expect_contains(outcome.rethrown, "rank 0/3: the device is lost");
      expect_all_others_say(outcome, 0, "rank 0 failed: the device is lost");
      devices.expect_untouched();
    }
}

TEST_F(DeviceFault, DifferentSizesEndAllRanks) {
  Devices devices(2, 1);
  const Outcome outcome = outcome_of(threads::create(2), [&](Transport& transport) {
    auto& [memory, queue] = devices.of(transport);
    Batch batch = memory.swap_with_all(transport, &queue);
    if (transport.rank() == 1) batch.receives[0].bytes -= 1;
    transport.finish(transport.start(batch));
  });
  expect_contains(outcome.rethrown, "4000 bytes at the sender and 3999 bytes at the receiver");
}

TEST_F(DeviceFault, AnUnfinishedSumLetsGoOfItsMemory) {
  constexpr int64_t kCount = 5000;
  for (int round = 0; round < 20; ++round) {
    std::list<FakeQueue> queues;
    for (uint64_t rank = 0; rank < 4; ++rank) queues.emplace_back(round * 4 + rank);
    const int culprit = round % 4;
    const Outcome outcome = outcome_of(threads::create(4), [&](Transport& transport) {
      FakeQueue& queue = *std::next(queues.begin(), transport.rank());
      auto data = std::make_unique<std::vector<double>>(kCount, 1.0);
      std::vector<double> scratch(kCount);
      try {
        for (int step = 0;; ++step) {
          AllReduce reduce(transport, {0, 1, 2, 3}, data->data(), kCount, SumType::kFloat64,
                           scratch.data(), &queue);
          if (transport.rank() == culprit && step == round % 3)
            throw InvalidInput("[op] thrown between");
          if (step % 2) reduce.advance();
          reduce.finish();
        }
      } catch (const Error&) {
        queue.drain();  // sums are the rank's own work
        std::fill(data->begin(), data->end(), -1);
        std::fill(scratch.begin(), scratch.end(), -1);
        throw;
      }
    });
    expect_contains(outcome.rethrown, "[op] rank ");
  }
}

}  // namespace
}  // namespace tessera::device_fault_test
