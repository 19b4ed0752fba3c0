// Collectives over groups of MPI ranks: the bits of a serial sum in rank order on every rank, and
// as much traffic as promised.

#include "tessera/comm/collectives.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <numeric>

#include "tessera/base/error.h"
#include "tessera/comm/decorators.h"
#include "tests/ranks/comm/pattern.h"
#include "tests/ranks/comm/traffic.h"
#include "tests/ranks/mpi/world.h"

namespace tessera::collectives_test {
namespace {

/// Everyone, every second rank, each pair of neighbours, each alone.
std::vector<Group> groups() {
  std::vector<Group> all{everyone(), {}};
  for (int rank = 0; rank < world().size(); ++rank) {
    if (rank % 2 == 0) all[1].push_back(rank);
    all.push_back({rank});
    if (rank > 0) all.push_back({rank - 1, rank});
  }
  return all;
}

int member_in(const Group& group) {
  const auto self = std::find(group.begin(), group.end(), world().rank());
  return self == group.end() ? -1 : static_cast<int>(self - group.begin());
}

/// What `rank` contributes: of widely different sizes, so that the order of a sum shows in its
/// bits.
template <class T>
std::vector<T> terms_of(int rank, int64_t count) {
  std::mt19937_64 random(rank * 7919 + count);
  std::vector<T> terms(count);
  for (T& term : terms) {
    const double mantissa = static_cast<double>(random()) / 1e19 - 0.9;
    term = static_cast<T>(mantissa * std::pow(10.0, static_cast<double>(random() % 9)));
  }
  return terms;
}

template <class T>
std::vector<T> serial_sum(const Group& group, int64_t count) {
  std::vector<T> sum = terms_of<T>(group[0], count);
  for (size_t i = 1; i < group.size(); ++i) {
    const std::vector<T> terms = terms_of<T>(group[i], count);
    for (int64_t k = 0; k < count; ++k) sum[k] += terms[k];
  }
  return sum;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

template <class T>
void expect_sums() {
  for (const Group& group : groups()) {
    const int member = member_in(group);
    if (member < 0) continue;
    for (int64_t count : {0, 1, 5, 512, 513, 1024, 1025, 4099, 100'003}) {
      TransportCounters counters;
      const auto counted = recording(std::make_unique<Borrowed>(world()), &counters);
      std::vector<T> data = terms_of<T>(world().rank(), count);
      AllReduce reduce(*counted, group, data.data(), count,
                       sizeof(T) == 4 ? SumType::kFloat32 : SumType::kFloat64);
      reduce.finish();
      EXPECT_TRUE(same_bits(data, serial_sum<T>(group, count))) << count << " elements";
      const Traffic promised = all_reduce_traffic(group.size(), member, count, sizeof(T));
      EXPECT_EQ(counters.messages, promised.messages);
      EXPECT_EQ(counters.bytes_sent, promised.bytes);
    }
  }
}

TEST(MpiCollectives, SumsEqualTheSerialSumInRankOrderFloat32) { expect_sums<float>(); }
TEST(MpiCollectives, SumsEqualTheSerialSumInRankOrderFloat64) { expect_sums<double>(); }

TEST(MpiCollectives, ManySumsOverlap) {
  const Group all = everyone();
  constexpr int kNumSums = 20;
  std::vector<std::vector<float>> data;
  for (int n = 0; n < kNumSums; ++n) data.push_back(terms_of<float>(world().rank(), 100 * n * n));
  std::vector<AllReduce> sums;
  for (int n = 0; n < kNumSums; ++n)
    sums.emplace_back(world(), all, data[n].data(), 100 * n * n, SumType::kFloat32);
  for (AllReduce& sum : sums) sum.finish();
  for (int n = 0; n < kNumSums; ++n)
    EXPECT_TRUE(same_bits(data[n], serial_sum<float>(all, 100 * n * n)));
}

TEST(MpiCollectives, GatherTakesBlocksOfAnySize) {
  for (const Group& group : groups()) {
    const int member = member_in(group);
    if (member < 0) continue;
    std::vector<int64_t> block_bytes;
    std::vector<char> expected;
    for (size_t i = 0; i < group.size(); ++i) {
      block_bytes.push_back(std::vector<int64_t>{17, 0, 300'000, 8, 4001}[i % 5]);
      const std::vector<char> block = pattern(group[i], block_bytes[i]);
      expected.insert(expected.end(), block.begin(), block.end());
    }
    const int64_t begin =
        std::accumulate(block_bytes.begin(), block_bytes.begin() + member, int64_t{0});
    std::vector<char> gathered(expected.size(), 'x');
    std::copy_n(expected.begin() + begin, block_bytes[member], gathered.begin() + begin);
    AllGather gather(world(), group, block_bytes, gathered.data());
    gather.finish();
    EXPECT_EQ(gathered, expected);
  }
}

TEST(MpiCollectives, BroadcastReachesTheGroupFromAnyRoot) {
  const Group all = everyone();
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
