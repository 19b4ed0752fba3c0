// Gather, broadcast and barrier over groups.

#include "tessera/comm/collectives.h"

#include <algorithm>
#include <atomic>
#include <numeric>

#include "tessera/base/error.h"
#include "tessera/comm/decorators.h"
#include "tessera/comm/threads/threads.h"
#include "tests/ranks/comm/pattern.h"
#include "tests/ranks/comm/traffic.h"
#include "tests/ranks/comm/watched.h"

namespace tessera::collectives_test {
namespace {

class Collectives : public WatchedTest {};

/// All members' blocks one after the other.
std::vector<char> all_blocks(const Group& group, const std::vector<int64_t>& block_bytes) {
  std::vector<char> blocks;
  for (size_t i = 0; i < group.size(); ++i) {
    const std::vector<char> block = pattern(group[i], block_bytes[i]);
    blocks.insert(blocks.end(), block.begin(), block.end());
  }
  return blocks;
}

void expect_gathered(const Group& group, const std::vector<int64_t>& block_bytes) {
  const std::vector<char> expected = all_blocks(group, block_bytes);
  auto world = threads::create(7);
  std::vector<TransportCounters> counters(7);
  for (int rank = 0; rank < 7; ++rank)
    world[rank] = recording(std::move(world[rank]), &counters[rank]);
  threads::run_ranks(world, [&](Transport& transport) {
    const auto self = std::find(group.begin(), group.end(), transport.rank());
    if (self == group.end()) return;
    const int member = static_cast<int>(self - group.begin());
    const int64_t begin =
        std::accumulate(block_bytes.begin(), block_bytes.begin() + member, int64_t{0});
    std::vector<char> gathered(expected.size(), 'x');
    const std::vector<char> own = pattern(transport.rank(), block_bytes[member]);
    std::copy(own.begin(), own.end(), gathered.begin() + begin);
    AllGather gather(transport, group, block_bytes, gathered.data());
    gather.finish();
    EXPECT_EQ(gathered, expected);
    const Traffic promised = all_gather_traffic(member, block_bytes);
    EXPECT_EQ(counters[transport.rank()].messages, promised.messages);
    EXPECT_EQ(counters[transport.rank()].bytes_sent, promised.bytes);
  });
}

TEST_F(Collectives, GatherTakesBlocksOfAnySize) {
  expect_gathered({3}, {10});
  expect_gathered({0, 6}, {0, 0});
  expect_gathered({0, 6}, {0, 9});
  expect_gathered({1, 2, 5}, {17, 0, 300'000});
  expect_gathered({0, 1, 2, 3, 4, 5, 6}, {8, 8, 8, 8, 8, 8, 8});
  expect_gathered({0, 1, 2, 3, 4, 5, 6}, {1, 0, 70'001, 3, 0, 5, 64});
}

TEST_F(Collectives, BroadcastReachesTheGroupFromAnyRoot) {
  const Group group = {0, 2, 3, 5};
  threads::run_ranks(6, [&](Transport& transport) {
    if (!std::count(group.begin(), group.end(), transport.rank())) return;
    for (int root = 0; root < 4; ++root)
      for (int64_t bytes : {0, 1, 1000, 2'000'000}) {
        const std::vector<char> expected = pattern(root, bytes);
        const bool is_root = transport.rank() == group[root];
        std::vector<char> data = is_root ? expected : std::vector<char>(bytes);
        broadcast(transport, group, root, data.data(), bytes);
        EXPECT_EQ(data, expected);
      }
    EXPECT_THROW(broadcast(transport, group, 4, nullptr, 1), InternalError);
  });
}

TEST_F(Collectives, NobodyLeavesABarrierBeforeAllHaveEntered) {
  for (int size = 1; size <= 9; ++size) {
    Group group(size);
    std::iota(group.begin(), group.end(), 0);
    std::atomic<int> entered{0};
    threads::run_ranks(size, [&](Transport& transport) {
      for (int round = 1; round <= 20; ++round) {
        if (transport.rank() == round % size) std::this_thread::yield();
        ++entered;
        barrier(transport, group);
        EXPECT_GE(entered.load(), round * size);
        barrier(transport, group);
      }
    });
  }
}

TEST_F(Collectives, ABarrierDoesNotShowInTheCounts) {
  auto world = threads::create(3);
  std::vector<TransportCounters> counters(3);
  for (int rank = 0; rank < 3; ++rank)
    world[rank] = recording(std::move(world[rank]), &counters[rank]);
  threads::run_ranks(world, [](Transport& transport) { barrier(transport, {0, 1, 2}); });
  for (const TransportCounters& counter : counters) {
    EXPECT_EQ(counter.messages, 0);
    EXPECT_EQ(counter.bytes_sent, 0);
  }
}

}  // namespace
}  // namespace tessera::collectives_test
