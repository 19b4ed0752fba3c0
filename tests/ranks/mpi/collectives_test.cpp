// Collectives over MPI ranks: the bits of the fold that is promised on every rank, and as much
// traffic as promised.

#include "tessera/comm/collectives.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "tessera/base/error.h"
#include "tessera/comm/borrowed.h"
#include "tessera/comm/decorators.h"
#include "tests/ranks/comm/pattern.h"
#include "tests/ranks/comm/sums.h"
#include "tests/ranks/comm/traffic.h"
#include "tests/ranks/mpi/world.h"

namespace tessera::collectives_test {
namespace {

/// Everyone, every second rank, each pair of neighbours, each alone.
std::vector<Members> member_lists() {
  std::vector<Members> all{everyone(), {}};
  for (int rank = 0; rank < world().size(); ++rank) {
    if (rank % 2 == 0) all[1].push_back(rank);
    all.push_back({rank});
    if (rank > 0) all.push_back({rank - 1, rank});
  }
  return all;
}

int member_in(const Members& members) {
  const auto self = std::find(members.begin(), members.end(), world().rank());
  return self == members.end() ? -1 : static_cast<int>(self - members.begin());
}

int64_t sum_over(const Members& members, int64_t own) {
  std::vector<int64_t> all(members.size());
  all[member_in(members)] = own;
  AllGather(world(), members, std::vector<int64_t>(members.size(), sizeof(own)), all.data())
      .finish();
  return std::accumulate(all.begin(), all.end(), int64_t{0});
}

template <class T>
void expect_sums() {
  for (const Members& members : member_lists()) {
    if (member_in(members) < 0) continue;
    for (int64_t count : {0, 1, 5, 512, 513, 4099, 100'003}) {
      TransportCounters counters;
      const auto counted = recording(std::make_unique<BorrowedTransport>(world()), &counters);
      std::vector<T> data = terms_of<T>(world().rank(), count);
      AllReduce reduce(*counted, members, data.data(), count, kTypeOf<T>);
      reduce.finish();
      EXPECT_TRUE(same_bits(data, folded_sum<T>(members, count))) << count << " elements";
      const Traffic promised =
          all_reduce_traffic(std::ssize(members), count * static_cast<int64_t>(sizeof(T)));
      EXPECT_EQ(sum_over(members, counters.bytes_sent), promised.bytes_of_all);
      EXPECT_LE(counters.messages, promised.most_messages);
    }
  }
}

TEST(MpiCollectives, SumsEqualTheFoldOnEveryRankFloat32) { expect_sums<float>(); }
TEST(MpiCollectives, SumsEqualTheFoldOnEveryRankFloat64) { expect_sums<double>(); }

TEST(MpiCollectives, ManySumsOverlap) {
  const Members all = everyone();
  constexpr int kNumSums = 20;
  std::vector<std::vector<float>> data;
  for (int n = 0; n < kNumSums; ++n) data.push_back(terms_of<float>(world().rank(), 100 * n * n));
  std::vector<AllReduce> sums;
  for (int n = 0; n < kNumSums; ++n)
    sums.emplace_back(world(), all, data[n].data(), 100 * n * n, SumType::kFloat32);
  for (AllReduce& sum : sums) sum.finish();
  for (int n = 0; n < kNumSums; ++n)
    EXPECT_TRUE(same_bits(data[n], folded_sum<float>(all, 100 * n * n)));
}

TEST(MpiCollectives, GatherTakesBlocksOfAnySize) {
  for (const Members& members : member_lists()) {
    const int member = member_in(members);
    if (member < 0) continue;
    std::vector<int64_t> block_bytes;
    std::vector<char> expected;
    for (size_t i = 0; i < members.size(); ++i) {
      block_bytes.push_back(std::vector<int64_t>{17, 0, 300'000, 8, 4001}[i % 5]);
      const std::vector<char> block = pattern(members[i], block_bytes[i]);
      expected.insert(expected.end(), block.begin(), block.end());
    }
    const int64_t begin =
        std::accumulate(block_bytes.begin(), block_bytes.begin() + member, int64_t{0});
    std::vector<char> gathered(expected.size(), 'x');
    std::copy_n(expected.begin() + begin, block_bytes[member], gathered.begin() + begin);
    AllGather gather(world(), members, block_bytes, gathered.data());
    gather.finish();
    EXPECT_EQ(gathered, expected);
  }
}

TEST(MpiCollectives, BroadcastReachesAllFromAnyRoot) {
  const Members all = everyone();
  for (int root = 0; root < world().size(); ++root)
    for (int64_t bytes : {0, 1, 1000, 2'000'000}) {
      const std::vector<char> expected = pattern(root, bytes);
      std::vector<char> data = world().rank() == root ? expected : std::vector<char>(bytes);
      broadcast(world(), all, root, data.data(), bytes);
      EXPECT_EQ(data, expected);
    }
}

/// One clock for all processes of a machine.
int64_t now_ns() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

TEST(MpiCollectives, NobodyLeavesABarrierBeforeAllHaveEntered) {
  const int size = world().size(), rank = world().rank();
  for (int round = 0; round < 50; ++round) {
    std::vector<int64_t> times(2 * size);
    times[2 * rank] = now_ns();
    barrier(world(), everyone());
    times[2 * rank + 1] = now_ns();
    AllGather gather(world(), everyone(), std::vector<int64_t>(size, 16), times.data());
    gather.finish();
    int64_t last_entry = 0, first_exit = times[1];
    for (int r = 0; r < size; ++r) {
      last_entry = std::max(last_entry, times[2 * r]);
      first_exit = std::min(first_exit, times[2 * r + 1]);
    }
    EXPECT_LE(last_entry, first_exit);
  }
}

}  // namespace
}  // namespace tessera::collectives_test
