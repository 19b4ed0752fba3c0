#pragma once
// Registers of several numbers, by the compiler's vector types: as wide as the machine that the
// kernels are compiled for has them. Numbers of type bf16 are float32 in registers.

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "tessera/kernels/cpu/bf16.h"

namespace tessera {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
constexpr int kNumRegisters = 32;
#elif defined(__AVX__)
constexpr int kVectorBytes = 32;
constexpr int kNumRegisters = 16;
#else
constexpr int kVectorBytes = 16;
constexpr int kNumRegisters = sizeof(void*) == 8 ? 16 : 8;
#endif

/// What arithmetic with numbers that lie in memory as T is in.
template <class T>
struct NumberOf {
  using Type = T;
};
template <>
struct NumberOf<Bf16> {
  using Type = float;
};
template <class T>
using Number = typename NumberOf<T>::Type;

template <class T>
constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(Number<T>));

/// May lie anywhere in memory.
template <class T>
struct VectorOf {
  typedef T Type __attribute__((vector_size(kVectorBytes), aligned(sizeof(T)), may_alias));
};
template <class T>
using Vector = typename VectorOf<Number<T>>::Type;

/// Whether the primary templates below are for it; those of bf16 are in
/// bf16_registers.h.
template <class T>
constexpr bool kLiesAsInRegisters = std::is_same_v<T, Number<T>>;

template <class T>
inline Vector<T> load(const T* from) {
  static_assert(kLiesAsInRegisters<T>);
  return *reinterpret_cast<const Vector<T>*>(from);
}

template <class T>
inline void store(T* to, Vector<T> value) {
  static_assert(kLiesAsInRegisters<T>);
  *reinterpret_cast<Vector<T>*>(to) = value;
}

/// The lanes [first, end) from memory, and zeros; memory of the other lanes is not touched.
template <class T>
inline Vector<T> load_between(const T* from, int64_t first, int64_t end) {
  static_assert(kLiesAsInRegisters<T>);
#if defined(__AVX512BW__)
  if constexpr (sizeof(T) == 2) {
    const auto mask = (uint64_t(1) << end) - (uint64_t(1) << first);
    return (Vector<T>)_mm512_maskz_loadu_epi16(static_cast<__mmask32>(mask), from);
  }
#endif
#if defined(__AVX512F__)
  const auto mask = static_cast<unsigned>((1u << end) - (1u << first));
  if constexpr (sizeof(T) == 4)
    return (Vector<T>)_mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), from);
  else
    return (Vector<T>)_mm512_maskz_loadu_pd(static_cast<__mmask8>(mask), from);
#else
  Vector<T> value = {};
  for (int64_t lane = first; lane < end; ++lane) value[lane] = from[lane];
  return value;
#endif
}

/// Stores the lanes [first, end); memory of the others is not touched.
template <class T>
inline void store_between(T* to, Vector<T> value, int64_t first, int64_t end) {
  static_assert(kLiesAsInRegisters<T>);
#if defined(__AVX512BW__)
  if constexpr (sizeof(T) == 2) {
    const auto mask = (uint64_t(1) << end) - (uint64_t(1) << first);
    return _mm512_mask_storeu_epi16(to, static_cast<__mmask32>(mask), (__m512i)value);
  }
#endif
#if defined(__AVX512F__)
  const auto mask = static_cast<unsigned>((1u << end) - (1u << first));
  if constexpr (sizeof(T) == 4)
    _mm512_mask_storeu_ps(to, static_cast<__mmask16>(mask), (__m512)value);
  else
    _mm512_mask_storeu_pd(to, static_cast<__mmask8>(mask), (__m512d)value);
#else
  for (int64_t lane = first; lane < end; ++lane) to[lane] = value[lane];
#endif
}

/// The lanes [first, end) of `value`, and the others of `old`.
template <class T>
inline Vector<T> blend_between(Vector<T> old, Vector<T> value, int64_t first, int64_t end) {
#if defined(__AVX512F__)
  const auto mask = static_cast<unsigned>((1u << end) - (1u << first));
  if constexpr (sizeof(Number<T>) == 4)
    return (Vector<T>)_mm512_mask_blend_ps(static_cast<__mmask16>(mask), (__m512)old,
                                           (__m512)value);
  else
    return (Vector<T>)_mm512_mask_blend_pd(static_cast<__mmask8>(mask), (__m512d)old,
                                           (__m512d)value);
#else
  for (int64_t lane = first; lane < end; ++lane) old[lane] = value[lane];
  return old;
#endif
}

/// Lanes of two registers, counted on from the first to the second.
template <class V, int... kPick>
inline V pick(V first, V second, std::integer_sequence<int, kPick...>) {
  return __builtin_shufflevector(first, second, kPick...);
}

/// function(0), function(1), ... as a sequence of kCount numbers.
template <int kCount, auto kFunction>
constexpr auto sequence_of() {
  return []<int... kIndex>(std::integer_sequence<int, kIndex...>) {
    return std::integer_sequence<int, kFunction(kIndex)...>();
  }
  (std::make_integer_sequence<int, kCount>());
}

/// For as many registers as one has lanes: lane i has the sum of the numbers of values[i].
template <class T>
inline Vector<T> sums_of_lanes(Vector<T> (&values)[kLanes<T>]) {
  // The lower halves of two blocks of lanes beside each other, and the upper ones.
  const auto add_halves = [&]<int kSize>(std::integral_constant<int, kSize>) {
    constexpr int kAll = kLanes<T>;
    constexpr auto kLower = [](int i) { return (i & kSize) == 0 ? i : kAll + i - kSize; };
    constexpr auto kUpper = [](int i) { return (i & kSize) == 0 ? i + kSize : kAll + i; };
#pragma GCC unroll 16
    for (int i = 0; i < kSize; ++i)
      values[i] = pick(values[i], values[i + kSize], sequence_of<kAll, kLower>()) +
                  pick(values[i], values[i + kSize], sequence_of<kAll, kUpper>());
  };
  if constexpr (kLanes < T >> 8) add_halves(std::integral_constant<int, 8>());
  if constexpr (kLanes < T >> 4) add_halves(std::integral_constant<int, 4>());
  if constexpr (kLanes < T >> 2) add_halves(std::integral_constant<int, 2>());
  add_halves(std::integral_constant<int, 1>());
  return values[0];
}

/// from[0], from[2], from[4], ...: as many as a register has lanes. Nothing after the last of them
/// is read.
template <class T>
inline Vector<T> load_every_second(const T* from) {
  constexpr int kAll = kLanes<T>, kHalf = kAll / 2;
  constexpr auto kPicks = [](int i) { return i < kHalf ? 2 * i : kAll + 2 * (i - kHalf) + 1; };
  return pick(load(from), load(from + kAll - 1), sequence_of<kAll, kPicks>());
}

/// The first `count` of them; nothing after the last of these is read.
template <class T>
inline Vector<T> load_every_second(const T* from, int64_t count) {
  constexpr int kAll = kLanes<T>, kHalf = kAll / 2;
  constexpr auto kPicks = [](int i) { return i < kHalf ? 2 * i : kAll + 2 * (i - kHalf) + 1; };
  const int64_t end = 2 * count - 1;
  const auto load_part = [&](int64_t begin) {
    return load_between(from + begin, 0, std::clamp<int64_t>(end - begin, 0, kAll));
  };
  return pick(load_part(0), load_part(kAll - 1), sequence_of<kAll, kPicks>());
}

/// to[0] = value[0], to[2] = value[1], ...: the first `count` of them. What lies between is not
/// touched.
template <class T>
inline void store_every_second(T* to, Vector<T> value, int64_t count) {
  static_assert(kLiesAsInRegisters<T>);
#if defined(__AVX512F__)
  constexpr int kAll = kLanes<T>;
  constexpr auto kLower = [](int i) { return i / 2; };
  constexpr auto kUpper = [](int i) { return kAll / 2 + i / 2; };
  const auto mask = static_cast<unsigned>(((uint64_t(1) << (2 * count)) - 1) & 0x55555555u);
  const auto store_half = [](T* half, Vector<T> spread, unsigned wanted) {
    if constexpr (sizeof(T) == 4)
      _mm512_mask_storeu_ps(half, static_cast<__mmask16>(wanted), (__m512)spread);
    else
      _mm512_mask_storeu_pd(half, static_cast<__mmask8>(wanted), (__m512d)spread);
  };
  store_half(to, pick(value, value, sequence_of<kAll, kLower>()), mask);
  store_half(to + kAll, pick(value, value, sequence_of<kAll, kUpper>()), mask >> kAll);
#else
  for (int64_t lane = 0; lane < count; ++lane) to[2 * lane] = value[lane];
#endif
}

/// Every fourth lane of four registers in a row: from lane 0 on, from lane 1 on, ... Registers have
/// at least four lanes.
template <class T>
inline void split_by_four(Vector<T> (&v)[4]) {
  constexpr int kAll = kLanes<T>;
  constexpr auto kEven = [](int i) { return 2 * i; };
  constexpr auto kOdd = [](int i) { return 2 * i + 1; };
  const Vector<T> even = pick(v[0], v[1], sequence_of<kAll, kEven>());
  const Vector<T> odd = pick(v[0], v[1], sequence_of<kAll, kOdd>());
  const Vector<T> far_even = pick(v[2], v[3], sequence_of<kAll, kEven>());
  const Vector<T> far_odd = pick(v[2], v[3], sequence_of<kAll, kOdd>());
  v[0] = pick(even, far_even, sequence_of<kAll, kEven>());
  v[1] = pick(odd, far_odd, sequence_of<kAll, kEven>());
  v[2] = pick(even, far_even, sequence_of<kAll, kOdd>());
  v[3] = pick(odd, far_odd, sequence_of<kAll, kOdd>());
}

/// The opposite: v[0][0], v[1][0], v[2][0], v[3][0], v[0][1], ...
template <class T>
inline void join_by_four(Vector<T> (&v)[4]) {
  constexpr int kAll = kLanes<T>;
  constexpr auto kLow = [](int i) { return i / 2 + i % 2 * kAll; };
  constexpr auto kHigh = [](int i) { return kAll / 2 + i / 2 + i % 2 * kAll; };
  constexpr auto kLowPairs = [](int i) { return i / 4 * 2 + i % 2 + i % 4 / 2 * kAll; };
  constexpr auto kHighPairs = [](int i) { return kAll / 2 + i / 4 * 2 + i % 2 + i % 4 / 2 * kAll; };
  const Vector<T> low = pick(v[0], v[1], sequence_of<kAll, kLow>());
  const Vector<T> high = pick(v[0], v[1], sequence_of<kAll, kHigh>());
  const Vector<T> far_low = pick(v[2], v[3], sequence_of<kAll, kLow>());
  const Vector<T> far_high = pick(v[2], v[3], sequence_of<kAll, kHigh>());
  v[0] = pick(low, far_low, sequence_of<kAll, kLowPairs>());
  v[1] = pick(low, far_low, sequence_of<kAll, kHighPairs>());
  v[2] = pick(high, far_high, sequence_of<kAll, kLowPairs>());
  v[3] = pick(high, far_high, sequence_of<kAll, kHighPairs>());
}

/// Rows become columns, for as many rows as a register has lanes.
template <class T>
inline void transpose(Vector<T> (&rows)[kLanes<T>]) {
  const auto swap_blocks = [&]<int kSize>(std::integral_constant<int, kSize>) {
    constexpr int kAll = kLanes<T>;
    constexpr auto kEven = [](int i) { return (i & kSize) == 0 ? i : kAll + i - kSize; };
    constexpr auto kOdd = [](int i) { return (i & kSize) == 0 ? i + kSize : kAll + i; };
#pragma GCC unroll 16
    for (int i = 0; i < kAll; ++i) {
      if ((i & kSize) != 0) continue;
      const Vector<T> first = rows[i], second = rows[i + kSize];
      rows[i] = pick(first, second, sequence_of<kAll, kEven>());
      rows[i + kSize] = pick(first, second, sequence_of<kAll, kOdd>());
    }
  };
  if constexpr (kLanes < T >> 8) swap_blocks(std::integral_constant<int, 8>());
  if constexpr (kLanes < T >> 4) swap_blocks(std::integral_constant<int, 4>());
  if constexpr (kLanes < T >> 2) swap_blocks(std::integral_constant<int, 2>());
  swap_blocks(std::integral_constant<int, 1>());
}

}  // namespace tessera
