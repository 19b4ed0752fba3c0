// Sums over groups: equal to the serial sum in rank order, bit by bit, on every rank; and as much
// traffic as promised.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "tessera/base/error.h"
#include "tessera/comm/collectives.h"
#include "tessera/comm/decorators.h"
#include "tessera/comm/threads/threads.h"
#include "tests/ranks/comm/pattern.h"
#include "tests/ranks/comm/traffic.h"
#include "tests/ranks/comm/watched.h"

namespace tessera::all_reduce_test {
namespace {

class AllReduceTest : public WatchedTest {};

template <class T>
constexpr SumType kTypeOf = sizeof(T) == 4 ? SumType::kFloat32 : SumType::kFloat64;

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

/// Members of `group` sum; the other ranks of the world of 9 do nothing.
template <class T>
void expect_sums(const Group& group, const std::vector<int64_t>& counts) {
  auto world = threads::create(9);
  std::vector<TransportCounters> counters(9);
  for (int rank = 0; rank < 9; ++rank)
    world[rank] = recording(std::move(world[rank]), &counters[rank]);
  for (int64_t count : counts) {
    const std::vector<T> expected = serial_sum<T>(group, count);
    for (auto& counter : counters) counter = {};
    threads::run_ranks(world, [&](Transport& transport) {
      const auto self = std::find(group.begin(), group.end(), transport.rank());
      if (self == group.end()) return;
      SCOPED_TRACE("group of " + std::to_string(group.size()) + ", count " + std::to_string(count));
      std::vector<T> data = terms_of<T>(transport.rank(), count);
      AllReduce reduce(transport, group, data.data(), count, kTypeOf<T>);
      reduce.finish();
      EXPECT_TRUE(same_bits(data, expected)) << "rank " << transport.rank();
      const Traffic promised =
          all_reduce_traffic(group.size(), self - group.begin(), count, sizeof(T));
      const TransportCounters& counted = counters[transport.rank()];
      EXPECT_EQ(counted.messages, promised.messages);
      EXPECT_EQ(counted.bytes_sent, promised.bytes);
    });
  }
}

const std::vector<Group> kGroups = {{4},
                                    {0, 1},
                                    {1, 8},
                                    {0, 3, 5},
                                    {2, 3, 4, 7},
                                    {0, 1, 2, 3, 4, 5, 6},
                                    {0, 1, 2, 3, 4, 5, 6, 7, 8}};

// Around the limit between small and large, and not multiples of any group.
const std::vector<int64_t> kCounts = {0,   1,    2,    5,    8,    511,    512,
                                      513, 1023, 1024, 1025, 4099, 100'003};

TEST_F(AllReduceTest, EqualsTheSerialSumInRankOrderFloat32) {
  for (const Group& group : kGroups) expect_sums<float>(group, kCounts);
}

TEST_F(AllReduceTest, EqualsTheSerialSumInRankOrderFloat64) {
  for (const Group& group : kGroups) expect_sums<double>(group, kCounts);
}

TEST_F(AllReduceTest, KeepsNegativeZero) {
  threads::run_ranks(3, [](Transport& transport) {
    double zero = -0.0;
    AllReduce reduce(transport, {0, 1, 2}, &zero, 1, SumType::kFloat64);
    reduce.finish();
    EXPECT_TRUE(std::signbit(zero));
  });
}

// More ranks than elements in the large algorithm: some chunks are empty. 513 doubles are the
// smallest large sum, which would take 514 threads, so only the formula is looked at.
TEST_F(AllReduceTest, TrafficWithEmptyChunks) {
  constexpr int64_t kCount = 513;
  constexpr int kSize = 600;
  const Traffic with_chunk = all_reduce_traffic(kSize, 0, kCount, sizeof(double));
  EXPECT_EQ(with_chunk, (Traffic{512 + 599, (512 + 599) * 8}));
  const Traffic without = all_reduce_traffic(kSize, 599, kCount, sizeof(double));
  EXPECT_EQ(without, (Traffic{513, 513 * 8}));
}

TEST_F(AllReduceTest, ManyOverlapOnDifferentGroups) {
  threads::run_ranks(4, [](Transport& transport) {
    const int rank = transport.rank();
    const Group all = {0, 1, 2, 3};
    const Group half = rank < 2 ? Group{0, 1} : Group{2, 3};
    constexpr int kNumSums = 20;
    std::vector<std::vector<float>> data;
    for (int n = 0; n < kNumSums; ++n) data.push_back(terms_of<float>(rank, 100 * n * n));
    std::vector<AllReduce> sums;
    for (int n = 0; n < kNumSums; ++n)
      sums.emplace_back(transport, n % 2 ? half : all, data[n].data(), 100 * n * n,
                        SumType::kFloat32);
    for (AllReduce& sum : sums) sum.finish();
    for (int n = 0; n < kNumSums; ++n)
      EXPECT_TRUE(same_bits(data[n], serial_sum<float>(n % 2 ? half : all, 100 * n * n)));
  });
}

TEST_F(AllReduceTest, AWrongGroupIsNamed) {
  auto world = threads::create(3);
  double data = 0;
  for (const Group& group : {Group{}, Group{1, 2}, Group{1, 0}, Group{0, 0}, Group{0, 3}})
    EXPECT_THROW(AllReduce(*world[0], group, &data, 1, SumType::kFloat64), InternalError);
}

}  // namespace
}  // namespace tessera::all_reduce_test
