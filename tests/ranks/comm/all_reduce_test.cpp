// Sums over members: the bits of the fold that is promised, on every rank, and as much traffic as
// promised.

#include <algorithm>
#include <cmath>

#include "tessera/base/collective_rounds.h"
#include "tessera/base/error.h"
#include "tessera/comm/collectives.h"
#include "tests/ranks/comm/recorded_world.h"
#include "tests/ranks/comm/sums.h"
#include "tests/ranks/comm/watched.h"

namespace tessera::all_reduce_test {
namespace {

class AllReduceTest : public WatchedTest {};

/// The members sum; the other ranks of the world of 9 do nothing.
template <class T>
void expect_sums(const Members& members, const std::vector<int64_t>& counts) {
  for (int64_t count : counts) {
    SCOPED_TRACE(testing::Message() << members.size() << " members, " << count << " elements");
    const std::vector<T> expected = folded_sum<T>(members, count);
    RecordedWorld world(9);
    threads::run_ranks(world.transports, [&](Transport& transport) {
      if (!std::count(members.begin(), members.end(), transport.rank())) return;
      std::vector<T> data = terms_of<T>(transport.rank(), count);
      AllReduce reduce(transport, members, data.data(), count, kTypeOf<T>);
      reduce.finish();
      EXPECT_TRUE(same_bits(data, expected)) << "rank " << transport.rank();
    });
    world.expect(all_reduce_traffic(std::ssize(members), count * static_cast<int64_t>(sizeof(T))));
  }
}

const std::vector<Members> kMembers = {{4},
                                       {0, 1},
                                       {1, 8},
                                       {0, 3, 5},
                                       {2, 3, 4, 7},
                                       {0, 1, 4, 6, 8},
                                       {0, 1, 2, 3, 4, 5, 6},
                                       {0, 1, 2, 3, 4, 5, 6, 7, 8}};

// Fewer than members, and not multiples of any number of them.
const std::vector<int64_t> kCounts = {0, 1, 2, 5, 8, 513, 4099, 100'003};

TEST_F(AllReduceTest, EqualsTheFoldOnEveryRankFloat32) {
  for (const Members& members : kMembers) expect_sums<float>(members, kCounts);
}

TEST_F(AllReduceTest, EqualsTheFoldOnEveryRankFloat64) {
  for (const Members& members : kMembers) expect_sums<double>(members, kCounts);
}

// Whole numbers are summed without rounding in any order, so this knows nothing of the pattern.
TEST_F(AllReduceTest, SumsWholeNumbersExactlyInWorldsOfAnySize) {
  for (int size = 1; size <= 17; ++size) {
    Members all;
    for (int rank = 0; rank < size; ++rank) all.push_back(rank);
    threads::run_ranks(size, [&](Transport& transport) {
      std::vector<double> data(3 * size + 1);
      for (size_t i = 0; i < data.size(); ++i)
        data[i] = static_cast<double>((transport.rank() + 1) * (i + 1));
      AllReduce reduce(transport, all, data.data(), std::ssize(data), SumType::kFloat64);
      reduce.finish();
      for (size_t i = 0; i < data.size(); ++i)
        EXPECT_EQ(data[i], static_cast<double>(size * (size + 1) / 2 * (i + 1)));
    });
  }
}

// However often it is stepped on the way, more often than it has rounds included.
TEST_F(AllReduceTest, StepByStepIsTheSame) {
  for (const Members& members : kMembers)
    for (int64_t count : kCounts)
      for (int steps : {1, 2, 3, 10}) {
        SCOPED_TRACE(testing::Message() << members.size() << " members, " << count << " elements, "
                                        << steps << " steps");
        const std::vector<float> expected = folded_sum<float>(members, count);
        RecordedWorld world(9);
        threads::run_ranks(world.transports, [&](Transport& transport) {
          if (!std::count(members.begin(), members.end(), transport.rank())) return;
          std::vector<float> data = terms_of<float>(transport.rank(), count);
          AllReduce reduce(transport, members, data.data(), count, SumType::kFloat32);
          for (int step = 0; step < steps; ++step) reduce.advance();
          reduce.finish();
          EXPECT_TRUE(same_bits(data, expected)) << "rank " << transport.rank();
        });
        world.expect(all_reduce_traffic(std::ssize(members), count * int64_t{sizeof(float)}));
      }
}

TEST_F(AllReduceTest, NeedsNoMoreScratchThanItAsksFor) {
  constexpr int64_t kCount = 1003;
  const Members all = {0, 1, 2, 3, 4, 5};
  const std::vector<double> expected = folded_sum<double>(all, kCount);
  threads::run_ranks(6, [&](Transport& transport) {
    constexpr double kUntouched = -7;
    const int64_t scratch_count = reduce_scratch(6, transport.rank(), kCount);
    std::vector<double> scratch(scratch_count + 1, kUntouched);
    std::vector<double> data = terms_of<double>(transport.rank(), kCount);
    AllReduce reduce(transport, all, data.data(), kCount, SumType::kFloat64, scratch.data());
    reduce.finish();
    EXPECT_TRUE(same_bits(data, expected));
    EXPECT_EQ(std::count(scratch.begin(), scratch.end(), kUntouched), 1)
        << "all of the scratch is used, and nothing behind it";
    EXPECT_EQ(scratch.back(), kUntouched);
  });
}

TEST_F(AllReduceTest, KeepsNegativeZero) {
  threads::run_ranks(3, [](Transport& transport) {
    double zero = -0.0;
    AllReduce reduce(transport, {0, 1, 2}, &zero, 1, SumType::kFloat64);
    reduce.finish();
    EXPECT_TRUE(std::signbit(zero));
  });
}

TEST_F(AllReduceTest, ManyOverlapOnDifferentMembers) {
  threads::run_ranks(4, [](Transport& transport) {
    const int rank = transport.rank();
    const Members all = {0, 1, 2, 3};
    const Members half = rank < 2 ? Members{0, 1} : Members{2, 3};
    constexpr int kNumSums = 20;
    std::vector<std::vector<float>> data;
    for (int n = 0; n < kNumSums; ++n) data.push_back(terms_of<float>(rank, 100 * n * n));
    std::vector<AllReduce> sums;
    for (int n = 0; n < kNumSums; ++n)
      sums.emplace_back(transport, n % 2 ? half : all, data[n].data(), 100 * n * n,
                        SumType::kFloat32);
    for (AllReduce& sum : sums) sum.finish();
    for (int n = 0; n < kNumSums; ++n)
      EXPECT_TRUE(same_bits(data[n], folded_sum<float>(n % 2 ? half : all, 100 * n * n)));
  });
}

// Of one element only member 0 has a block: the others' first rounds differ, some are empty. A sum
// in between must not take the messages of another one for its own.
TEST_F(AllReduceTest, OverlapsWithSumsOfFewerElementsThanMembers) {
  const Members all = {0, 1, 2, 3, 4};
  threads::run_ranks(5, [&](Transport& transport) {
    std::vector<std::vector<double>> data;
    for (int64_t count : {1, 4, 1, 700, 2, 1})
      data.push_back(terms_of<double>(transport.rank(), count));
    std::vector<AllReduce> sums;
    for (auto& terms : data)
      sums.emplace_back(transport, all, terms.data(), std::ssize(terms), SumType::kFloat64);
    for (AllReduce& sum : sums) sum.finish();
    for (const auto& sum : data)
      EXPECT_TRUE(same_bits(sum, folded_sum<double>(all, std::ssize(sum))));
  });
}

TEST_F(AllReduceTest, WrongMembersAreNamed) {
  auto world = threads::create(3);
  double data = 0;
  for (const Members& members :
       {Members{}, Members{1, 2}, Members{1, 0}, Members{0, 0}, Members{0, 3}})
    EXPECT_THROW(AllReduce(*world[0], members, &data, 1, SumType::kFloat64), InternalError);
}

}  // namespace
}  // namespace tessera::all_reduce_test
