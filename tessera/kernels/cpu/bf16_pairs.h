#pragma once
// Numbers of type bf16 two by two, as processors multiply them: a pair is 32 bits, and the product
// of two pairs is the sum of two products, exact but for one rounding to float32.
//
//   rows     a [ a0 a1 a2 ... ]            pairs  [ (a0, b0) (a1, b1) (a2, b2) ... ]
//            b [ b0 b1 b2 ... ]     ──►

#include <algorithm>
#include <cstdint>

#include "tessera/kernels/cpu/bf16_registers.h"

namespace tessera {

using Bf16Pair = uint32_t;

/// Whether the kernels were compiled for a machine that multiplies pairs; where they were not,
/// there are no products of pairs.
#if defined(__AVX512BF16__) && defined(__AVX512BW__) && defined(__AVX512VL__)
constexpr bool kHasBf16Pairs = true;
#else
constexpr bool kHasBf16Pairs = false;
#endif

inline Vector<float> with_pairs_added(Vector<float> sum, Bf16Pair a, Vector<Bf16Pair> b) {
#if defined(__AVX512BF16__)
  return (Vector<float>)_mm512_dpbf16_ps((__m512)sum, (__m512bh)_mm512_set1_epi32((int)a),
                                         (__m512bh)b);
#else
  for (int lane = 0; lane < kLanes<float>; ++lane) {
    const auto part = [](Bf16Pair pair, int shift) {
      return float(Bf16::of_bits(static_cast<uint16_t>(pair >> shift)));
    };
    sum[lane] += part(a, 0) * part(b[lane], 0) + part(a, 16) * part(b[lane], 16);
  }
  return sum;
#endif
}

inline Bf16Pair pair_of(float first, float second) {
  return Bf16(first).bits | static_cast<Bf16Pair>(Bf16(second).bits) << 16;
}

/// Rows of `count` numbers, whole registers of pairs; panels of `per_panel` pairs lie
/// `panel_stride` apart.
inline void interleave(const uint16_t* a, const uint16_t* b, int64_t count, int64_t per_panel,
                       int64_t panel_stride, Bf16Pair* to) {
  constexpr int kAll = kLanes<uint16_t>, kHalf = kAll / 2;
  constexpr auto kLow = [](int i) { return i / 2 + i % 2 * kAll; };
  constexpr auto kHigh = [](int i) { return kHalf + i / 2 + i % 2 * kAll; };
  for (int64_t i = 0; i < count; i += kAll) {
    const Vector<uint16_t> first = load(a + i), second = load(b + i);
    const auto place = [&](int64_t at) {
      return to + at / per_panel * panel_stride + at % per_panel;
    };
    store(place(i), (Vector<Bf16Pair>)pick(first, second, sequence_of<kAll, kLow>()));
    store(place(i + kHalf), (Vector<Bf16Pair>)pick(first, second, sequence_of<kAll, kHigh>()));
  }
}

}  // namespace tessera
