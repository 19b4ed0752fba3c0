// The memory of all tensors: pages that are kept, and an account for each rank.

#include "tessera/runtime/caching_allocator.h"

#include <ATen/ATen.h>
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

namespace tessera::caching_allocator_test {
namespace {

constexpr int64_t kMebibyte = 1 << 20;

at::Tensor bytes(int64_t count) { return at::empty({count}, at::kByte); }

/// Begins with nothing cached, so that what a test sees is its own.
class CachingAllocator : public testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("TESSERA_SYSTEM_MALLOC")) GTEST_SKIP() << "the system's allocator is asked for";
    install_caching_allocator();
    release_cached_memory();
    before_ = system_bytes();
  }

  /// Bytes that the test has from the system, in use or cached.
  int64_t taken() const { return system_bytes() - before_; }

 private:
  int64_t before_ = 0;
};

TEST_F(CachingAllocator, TakesABlockFromTheSystemOnlyOnce) {
  for (const int64_t size : {100 * int64_t{1}, 16 * kMebibyte}) {
    const void* data = bytes(size).data_ptr();
    const int64_t taken_once = taken();
    EXPECT_GE(taken_once, size);
    for (int step = 0; step < 3; ++step) EXPECT_EQ(bytes(size).data_ptr(), data) << size;
    EXPECT_EQ(taken(), taken_once);
  }
}

TEST_F(CachingAllocator, GivesBackWhatIsNotInUse) {
  const at::Tensor used = bytes(1000).fill_(7);
  const int64_t in_use = taken();
  bytes(kMebibyte);
  bytes(64 * kMebibyte);
  EXPECT_GE(taken(), 65 * kMebibyte);
  release_cached_memory();
  EXPECT_EQ(taken(), in_use);
  EXPECT_TRUE(used.eq(7).all().item<bool>());
}

TEST_F(CachingAllocator, TakesAtMostAnEighthMoreThanAskedFor) {
  for (int64_t size = 1; size < 8 * kMebibyte; size += size / 3 + 1) {
    release_cached_memory();
    const at::Tensor block = bytes(size);
    EXPECT_GE(taken(), size);
    EXPECT_LE(taken(), size + size / 8 + 64) << size;
  }
}

TEST_F(CachingAllocator, ASmallRequestTakesNoLargeBlock) {
  const void* large = bytes(kMebibyte).data_ptr();
  EXPECT_EQ(bytes(kMebibyte / 2).data_ptr(), large);
  const int64_t before = taken();
  EXPECT_NE(bytes(kMebibyte / 4).data_ptr(), large);
  EXPECT_GT(taken(), before);
}

TEST_F(CachingAllocator, BlocksAreAligned) {
  for (const int64_t size : {1, 63, 65, 1000, 5'000'000, 20'000'000})
    EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes(size).data_ptr()) % 64, 0u) << size;
}

TEST_F(CachingAllocator, AnEmptyTensorCostsNothing) {
  MemoryAccount account;
  AccountScope scope(&account);
  const at::Tensor empty = bytes(0);
  EXPECT_EQ(account.peak(), 0);
  EXPECT_EQ(taken(), 0);
}

TEST_F(CachingAllocator, AnAccountKnowsWhatIsLiveAndThePeak) {
  MemoryAccount account;
  AccountScope scope(&account);
  at::Tensor first = bytes(1000), second = bytes(300);
  EXPECT_EQ(account.live(), 1300);
  first = at::Tensor();
  EXPECT_EQ(account.live(), 300);
  EXPECT_EQ(account.peak(), 1300);
  account.reset_peak();
  EXPECT_EQ(account.peak(), 300);
  const at::Tensor third = bytes(50);  // in a block of another size
  EXPECT_EQ(account.peak(), 350);
}

TEST_F(CachingAllocator, SeesWhatKernelsAllocateInside) {
  const at::Tensor image = at::ones({1, 4, 16, 16}, at::kDouble);
  const at::Tensor weight = at::ones({4, 4, 3, 3}, at::kDouble);
  MemoryAccount account;
  AccountScope scope(&account);
  const at::Tensor y = at::conv2d(image, weight, {}, 1, 1);
  EXPECT_EQ(account.live(), static_cast<int64_t>(y.nbytes()));
  EXPECT_GE(account.peak(), account.live() + static_cast<int64_t>(9 * image.nbytes()))
      << "without the unfolded image";
}

TEST_F(CachingAllocator, ScopesNest) {
  MemoryAccount outer, inner;
  const at::Tensor before = bytes(1);
  AccountScope outer_scope(&outer);
  const at::Tensor a = bytes(10);
  {
    AccountScope inner_scope(&inner);
    const at::Tensor b = bytes(200);
    EXPECT_EQ(inner.live(), 200);
  }
  const at::Tensor c = bytes(30);
  EXPECT_EQ(outer.peak(), 40);
  EXPECT_EQ(inner.peak(), 200);
  EXPECT_EQ(inner.live(), 0);
}

TEST_F(CachingAllocator, ABlockStaysOnTheAccountThatTookIt) {
  MemoryAccount taker, other;
  at::Tensor block;
  {
    AccountScope scope(&taker);
    block = bytes(500);
  }
  EXPECT_EQ(taker.live(), 500);
  std::thread([&] {
    AccountScope scope(&other);
    block = at::Tensor();
  }).join();
  EXPECT_EQ(taker.live(), 0);
  EXPECT_EQ(other.live(), 0);
}

TEST_F(CachingAllocator, EveryRankHasItsOwnAccount) {
  constexpr int kRanks = 4, kBlocks = 20'000;
  std::vector<MemoryAccount> accounts(kRanks);
  std::vector<std::vector<at::Tensor>> blocks(kRanks);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < kRanks; ++rank)
    ranks.emplace_back([&, rank] {
      AccountScope scope(&accounts[rank]);
      for (int i = 0; i < kBlocks; ++i) {
        bytes(i % 500 + 1);  // goes at once, and its block to any rank
        if (i % 100 == 0) blocks[rank].push_back(bytes(rank + 1).fill_(rank));
      }
    });
  for (std::thread& rank : ranks) rank.join();
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(accounts[rank].live(), kBlocks / 100 * (rank + 1));
    for (const at::Tensor& block : blocks[rank])
      ASSERT_TRUE(block.eq(rank).all().item<bool>()) << "a block was given to two ranks";
    blocks[rank].clear();
    EXPECT_EQ(accounts[rank].live(), 0);
  }
}

TEST_F(CachingAllocator, ItIsInstalledOnlyOnce) {
  const c10::Allocator* allocator = c10::GetCPUAllocator();
  install_caching_allocator();
  EXPECT_EQ(c10::GetCPUAllocator(), allocator);
}

}  // namespace
}  // namespace tessera::caching_allocator_test
