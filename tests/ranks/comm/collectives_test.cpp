// Gather, broadcast and barrier over members.

#include "tessera/comm/collectives.h"

#include <algorithm>
#include <atomic>
#include <numeric>

#include "tessera/base/error.h"
#include "tests/ranks/comm/pattern.h"
#include "tests/ranks/comm/recorded_world.h"
#include "tests/ranks/comm/watched.h"

namespace tessera::collectives_test {
namespace {

class Collectives : public WatchedTest {};

/// All members' blocks one after the other.
std::vector<char> all_blocks(const Members& members, const std::vector<int64_t>& block_bytes) {
  std::vector<char> blocks;
  for (size_t i = 0; i < members.size(); ++i) {
    const std::vector<char> block = pattern(members[i], block_bytes[i]);
    blocks.insert(blocks.end(), block.begin(), block.end());
  }
  return blocks;
}

void expect_gathered(const Members& members, const std::vector<int64_t>& block_bytes) {
  const std::vector<char> expected = all_blocks(members, block_bytes);
  RecordedWorld world(7);
  threads::run_ranks(world.transports, [&](Transport& transport) {
    const auto self = std::find(members.begin(), members.end(), transport.rank());
    if (self == members.end()) return;
    const int64_t member = self - members.begin();
    const int64_t begin =
        std::accumulate(block_bytes.begin(), block_bytes.begin() + member, int64_t{0});
    std::vector<char> gathered(expected.size(), 'x');
    const std::vector<char> own = pattern(transport.rank(), block_bytes[member]);
    std::copy(own.begin(), own.end(), gathered.begin() + begin);
    AllGather gather(transport, members, block_bytes, gathered.data());
    gather.finish();
    EXPECT_EQ(gathered, expected);
  });
  world.expect(all_gather_traffic(std::ssize(members), std::ssize(expected)));
}

TEST_F(Collectives, GatherTakesBlocksOfAnySize) {
  expect_gathered({3}, {10});
  expect_gathered({0, 6}, {0, 0});
  expect_gathered({0, 6}, {0, 9});
  expect_gathered({1, 2, 5}, {17, 0, 300'000});
  expect_gathered({0, 2, 3, 4, 6}, {5, 6, 7, 8, 9});
  expect_gathered({0, 1, 2, 3, 4, 5, 6}, {8, 8, 8, 8, 8, 8, 8});
  expect_gathered({0, 1, 2, 3, 4, 5, 6}, {1, 0, 70'001, 3, 0, 5, 64});
}

TEST_F(Collectives, GathersAndSumsOverlap) {
  const Members all = {0, 1, 2, 3, 4};
  const std::vector<int64_t> block_bytes = {3, 0, 90'000, 1, 8};
  const std::vector<char> expected = all_blocks(all, block_bytes);
  threads::run_ranks(5, [&](Transport& transport) {
    const int rank = transport.rank();
    std::vector<char> gathered(expected.size());
    const int64_t begin =
        std::accumulate(block_bytes.begin(), block_bytes.begin() + rank, int64_t{0});
    std::copy_n(expected.begin() + begin, block_bytes[rank], gathered.begin() + begin);
    double small = rank, large[100];
    std::fill_n(large, 100, rank);
    AllReduce first(transport, all, &small, 1, SumType::kFloat64);
    AllGather gather(transport, all, block_bytes, gathered.data());
    AllReduce last(transport, all, large, 100, SumType::kFloat64);
    gather.finish();
    last.finish();
    first.finish();
    EXPECT_EQ(gathered, expected);
    EXPECT_EQ(small, 10);
    EXPECT_EQ(std::count(large, large + 100, 10), 100);
  });
}

TEST_F(Collectives, BroadcastReachesTheMembersFromAnyRoot) {
  const Members members = {0, 2, 3, 5, 6};
  for (int root = 0; root < 5; ++root)
    for (int64_t bytes : {0, 1, 1000, 2'000'000}) {
      RecordedWorld world(7);
      threads::run_ranks(world.transports, [&](Transport& transport) {
        if (!std::count(members.begin(), members.end(), transport.rank())) return;
        const std::vector<char> expected = pattern(root, bytes);
        const bool is_root = transport.rank() == members[root];
        std::vector<char> data = is_root ? expected : std::vector<char>(bytes);
        broadcast(transport, members, root, data.data(), bytes);
        EXPECT_EQ(data, expected);
        EXPECT_THROW(broadcast(transport, members, 5, nullptr, 1), InternalError);
      });
      world.expect(broadcast_traffic(5, bytes));
    }
}

TEST_F(Collectives, NobodyLeavesABarrierBeforeAllHaveEntered) {
  for (int size = 1; size <= 9; ++size) {
    Members all(size);
    std::iota(all.begin(), all.end(), 0);
    std::atomic<int> entered{0};
    threads::run_ranks(size, [&](Transport& transport) {
      for (int round = 1; round <= 20; ++round) {
        if (transport.rank() == round % size) std::this_thread::yield();
        ++entered;
        barrier(transport, all);
        EXPECT_GE(entered.load(), round * size);
        barrier(transport, all);
      }
    });
  }
}

TEST_F(Collectives, ABarrierDoesNotShowInTheCounts) {
  RecordedWorld world(3);
  threads::run_ranks(world.transports, [](Transport& transport) { barrier(transport, {0, 1, 2}); });
  world.expect({.most_messages = 0, .bytes_of_all = 0});
}

}  // namespace
}  // namespace tessera::collectives_test
