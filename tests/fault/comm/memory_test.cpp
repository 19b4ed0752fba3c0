// A rank that leaves frees its buffers while its peers may be about to copy from or into them.
// These tests make that race as often as they can; the sanitizers judge. Without a sanitizer they
// still notice a peer that writes into memory which has been given to someone else.

#include <algorithm>
#include <random>
#include <thread>

#include "tessera/comm/collectives.h"
#include "tests/fault/comm/outcome.h"
#include "tests/ranks/comm/watched.h"

namespace tessera::memory_test {
namespace {

class Memory : public WatchedTest {};

constexpr int64_t kBytes = 40'000;

/// Buffers of one rank that swaps with all others; scribbled over before they are freed.
struct Buffers {
  explicit Buffers(int size) : sent(size * kBytes, 's'), received(size * kBytes, 'r') {}
  ~Buffers() { std::fill(received.begin(), received.end(), 'x'); }

  Batch swap_with_all(const Transport& transport) {
    Batch batch;
    for (int peer = 0; peer < transport.size(); ++peer) {
      if (peer == transport.rank()) continue;
      batch.sends.push_back({peer, sent.data() + peer * kBytes, kBytes});
      batch.receives.push_back({peer, received.data() + peer * kBytes, kBytes});
    }
    return batch;
  }

  std::vector<char> sent, received;
};

TEST_F(Memory, BuffersMayDieWhenFinishThrows) {
  for (int round = 0; round < 60; ++round) {
    const Outcome outcome = outcome_of(4, {}, [round](Transport& transport) {
      std::mt19937 random(round * 4 + transport.rank());
      for (int step = 0;; ++step) {
        Buffers buffers(4), more(4);
        const Ticket first = transport.start(buffers.swap_with_all(transport));
        const Ticket second = transport.start(more.swap_with_all(transport));
        if (transport.rank() == round % 4 && step == round % 3) {
          for (unsigned n = random() % 8; n > 0; --n) std::this_thread::yield();
          transport.abort("enough");
        }
        transport.finish(second);
        transport.finish(first);
      }
    });
    expect_contains(outcome.rethrown, "enough");
  }
}

TEST_F(Memory, BuffersMayDieAfterATimeout) {
  for (int round = 0; round < 40; ++round) {
    // The timeout is about as long as the exchange takes: it strikes anywhere.
    const Outcome outcome = outcome_of(3, {std::chrono::milliseconds(1)}, [](Transport& transport) {
      for (int step = 0; step < 20; ++step) {
        Buffers buffers(3);
        transport.finish(transport.start(buffers.swap_with_all(transport)));
      }
    });
    if (!outcome.rethrown.empty()) expect_contains(outcome.rethrown, "in vain");
  }
}

TEST_F(Memory, ATransportMayDieWithBatchesOutstanding) {
  for (int round = 0; round < 60; ++round) {
    World world = threads::create(3);
    std::vector<std::unique_ptr<Buffers>> kept;
    for (int n = 0; n < 6; ++n) kept.push_back(std::make_unique<Buffers>(3));
    std::vector<std::jthread> ranks;
    for (int rank = 0; rank < 3; ++rank)
      ranks.emplace_back([&, rank] {
        try {
          world[rank]->start(kept[rank]->swap_with_all(*world[rank]));
          world[rank]->start(kept[rank + 3]->swap_with_all(*world[rank]));
        } catch (const CommError&) {
          // Another rank has left already.
        }
        world[rank].reset();
        kept[rank].reset();
        kept[rank + 3].reset();
      });
  }
}

TEST_F(Memory, AnUnfinishedCollectiveLetsGoOfItsMemory) {
  constexpr int64_t kCount = 400'000;  // long copies, which the exception meets half-way
  for (int round = 0; round < 20; ++round) {
    const int culprit = round % 4;
    const Outcome outcome = outcome_of(4, {}, [culprit](Transport& transport) {
      std::vector<double> data(kCount, 1.0);
      for (int step = 0;; ++step) {
        AllReduce reduce(transport, {0, 1, 2, 3}, data.data(), kCount, SumType::kFloat64);
        if (transport.rank() == culprit && step == 1) throw InvalidInput("[op] thrown between");
        reduce.finish();
      }
    });
    expect_all_others_say(
        outcome, culprit,
        fmt::format("rank {} failed: an all-reduce was left unfinished", culprit));
    EXPECT_EQ(outcome.rethrown, fmt::format("[op] rank {}/4: thrown between", culprit));
  }
}

TEST_F(Memory, AssigningOverAnUnfinishedSumIsSafe) {
  auto world = threads::create(2);
  std::vector<double> data(2000);
  AllReduce reduce(*world[0], {0, 1}, data.data(), 2000, SumType::kFloat64);
  reduce = AllReduce(*world[0], {0}, data.data(), 2000, SumType::kFloat64);
  reduce.finish();
  EXPECT_THROW(barrier(*world[1], {0, 1}), CommError);
}

}  // namespace
}  // namespace tessera::memory_test
