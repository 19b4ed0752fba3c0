#include "tessera/data/permutation.h"

#include <bit>

#include "tessera/base/error.h"

namespace tessera {
namespace {

constexpr int kRounds = 8;

/// A bijection of [0, 2^(left_bits + right_bits)). Each round replaces (l, r) by (r, l ^ f(r)); an
/// even number of rounds brings unequal widths back to where they were.
uint64_t feistel(const RandomKey& key, uint64_t value, int left_bits, int right_bits) {
  uint64_t left = value >> right_bits;
  uint64_t right = value & ((uint64_t{1} << right_bits) - 1);
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t mask = (uint64_t{1} << left_bits) - 1;
    // The top bits of the draw choose, and the index holds the round so that no two rounds agree.
    const uint64_t noise = key.bits(right * kRounds + static_cast<uint64_t>(round)) >> 20;
    const uint64_t mixed = left ^ (noise & mask);
    left = right;
    right = mixed;
    std::swap(left_bits, right_bits);
  }
  return left << right_bits | right;
}

}  // namespace

int64_t permuted(const RandomKey& key, int64_t place, int64_t count) {
  TESSERA_CHECK(0 <= place && place < count, "place {} of {}", place, count);
  // At least two bits, so that each half has one; at most four times as many values as places.
  const int bits = std::max(2, static_cast<int>(std::bit_width(static_cast<uint64_t>(count - 1))));
  const int right_bits = bits / 2;
  uint64_t value = static_cast<uint64_t>(place);
  do {
    value = feistel(key, value, bits - right_bits, right_bits);
  } while (value >= static_cast<uint64_t>(count));
  return static_cast<int64_t>(value);
}

}  // namespace tessera
