#pragma once
// Registers of numbers that lie in memory as bf16, by the same rules as single ones (bf16.h).

#include "tessera/kernels/cpu/vector.h"

namespace tessera {

typedef uint16_t NarrowBits __attribute__((vector_size(kVectorBytes / 2), aligned(2), may_alias));
typedef uint32_t WideBits __attribute__((vector_size(kVectorBytes)));

inline Vector<Bf16> widened(NarrowBits bits) {
  const WideBits wide = __builtin_convertvector(bits, WideBits) << 16;
  return (Vector<Bf16>)wide;
}

inline NarrowBits rounded(Vector<Bf16> value) {
  const WideBits bits = (WideBits)value;
  const WideBits nearest = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const WideBits is_number = (WideBits)(value == value);
  return __builtin_convertvector((is_number & nearest) | (~is_number & 0x7fc0), NarrowBits);
}

template <>
inline Vector<Bf16> load(const Bf16* from) {
  return widened(*reinterpret_cast<const NarrowBits*>(from));
}

template <>
inline void store(Bf16* to, Vector<Bf16> value) {
  *reinterpret_cast<NarrowBits*>(to) = rounded(value);
}

template <>
inline Vector<Bf16> load_between(const Bf16* from, int64_t first, int64_t end) {
#if defined(__AVX512BW__) && defined(__AVX512VL__)
  const auto mask = static_cast<__mmask16>((1u << end) - (1u << first));
  return widened((NarrowBits)_mm256_maskz_loadu_epi16(mask, from));
#else
  NarrowBits bits = {};
  for (int64_t lane = first; lane < end; ++lane) bits[lane] = from[lane].bits;
  return widened(bits);
#endif
}

template <>
inline void store_between(Bf16* to, Vector<Bf16> value, int64_t first, int64_t end) {
  const NarrowBits bits = rounded(value);
#if defined(__AVX512BW__) && defined(__AVX512VL__)
  const auto mask = static_cast<__mmask16>((1u << end) - (1u << first));
  _mm256_mask_storeu_epi16(to, mask, (__m256i)bits);
#else
  for (int64_t lane = first; lane < end; ++lane) to[lane].bits = bits[lane];
#endif
}

template <>
inline void store_every_second(Bf16* to, Vector<Bf16> value, int64_t count) {
  const NarrowBits bits = rounded(value);
  for (int64_t lane = 0; lane < count; ++lane) to[2 * lane].bits = bits[lane];
}

}  // namespace tessera
