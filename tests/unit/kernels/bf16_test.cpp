// Rounding to bf16, beside ATen's, for single numbers and for registers.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <bit>
#include <cfloat>
#include <cmath>
#include <limits>
#include <vector>

#include "tessera/base/random.h"
#include "tessera/kernels/cpu/bf16_registers.h"

namespace tessera::bf16_kernel_test {
namespace {

/// All exponents and signs, numbers half way between two, denormals, infinities and what is none.
std::vector<float> numbers() {
  std::vector<float> numbers;
  const RandomKey key(1);
  for (uint32_t upper = 0; upper < 0x10000; upper += 7)
    for (const uint32_t lower : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu,
                                 static_cast<uint32_t>(key.bits(upper)) & 0xffff})
      numbers.push_back(std::bit_cast<float>(upper << 16 | lower));
  for (const float special : {std::numeric_limits<float>::infinity(), -INFINITY, NAN, -NAN,
                              std::numeric_limits<float>::max(), FLT_TRUE_MIN, -0.0f})
    numbers.push_back(special);
  while (numbers.size() % kLanes<Bf16> != 0) numbers.push_back(1);
  return numbers;
}

/// ATen's, from its own memory.
std::vector<uint16_t> rounded_by_aten(std::vector<float>& numbers) {
  const at::Tensor narrow =
      at::from_blob(numbers.data(), {static_cast<int64_t>(numbers.size())}, at::kFloat)
          .to(at::kBFloat16);
  const auto* bits = reinterpret_cast<const uint16_t*>(narrow.data_ptr<at::BFloat16>());
  return {bits, bits + numbers.size()};
}

bool is_none(uint16_t bits) { return (bits & 0x7fff) > 0x7f80; }

TEST(Bf16, RoundsAsATenDoes) {
  std::vector<float> all = numbers();
  const std::vector<uint16_t> expected = rounded_by_aten(all);
  for (size_t i = 0; i < all.size(); ++i) {
    const uint16_t found = Bf16(all[i]).bits;
    EXPECT_TRUE(found == expected[i] || (is_none(found) && is_none(expected[i])))
        << std::bit_cast<uint32_t>(all[i]);
  }
}

TEST(Bf16, RegistersRoundAsSingleNumbers) {
  const std::vector<float> all = numbers();
  std::vector<Bf16> stored(all.size());
  for (size_t i = 0; i < all.size(); i += kLanes<Bf16>) {
    store(&stored[i], load(&all[i]));
    const Vector<Bf16> back = load(&stored[i]);
    for (int lane = 0; lane < kLanes<Bf16>; ++lane) {
      EXPECT_EQ(stored[i + lane].bits, Bf16(all[i + lane]).bits);
      EXPECT_EQ(std::bit_cast<uint32_t>(static_cast<float>(stored[i + lane])),
                std::bit_cast<uint32_t>(static_cast<float>(back[lane])));
    }
  }
}

TEST(Bf16, PartsOfRegistersTouchNothingElse) {
  constexpr int kAll = kLanes<Bf16>;
  std::vector<Bf16> from(kAll);
  for (int i = 0; i < kAll; ++i) from[i] = static_cast<float>(i + 1);
  for (int64_t first = 0; first <= kAll; ++first)
    for (int64_t end = first; end <= kAll; ++end) {
      const Vector<Bf16> part = load_between(from.data(), first, end);
      std::vector<Bf16> to(kAll, Bf16(-1));
      store_between(to.data(), load(from.data()), first, end);
      for (int i = 0; i < kAll; ++i) {
        const bool inside = first <= i && i < end;
        EXPECT_EQ(part[i], inside ? static_cast<float>(from[i]) : 0.0f);
        EXPECT_EQ(static_cast<float>(to[i]), inside ? static_cast<float>(from[i]) : -1.0f);
      }
    }
}

TEST(Bf16, EverySecondNumber) {
  constexpr int kAll = kLanes<Bf16>;
  std::vector<Bf16> from(2 * kAll);
  for (int i = 0; i < 2 * kAll; ++i) from[i] = static_cast<float>(i);
  for (int64_t count = 0; count <= kAll; ++count) {
    const Vector<Bf16> read = load_every_second(from.data(), count);
    std::vector<Bf16> to(2 * kAll, Bf16(-1));
    store_every_second(to.data(), read, count);
    for (int i = 0; i < 2 * kAll; ++i)
      EXPECT_EQ(static_cast<float>(to[i]), i % 2 == 0 && i < 2 * count ? i : -1);
  }
}

}  // namespace
}  // namespace tessera::bf16_kernel_test
