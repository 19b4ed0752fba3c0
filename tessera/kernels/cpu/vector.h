#pragma once
// Registers of several numbers, by the compiler's vector types: as wide as the machine that the
// kernels are compiled for has them.

#include <cstdint>
#include <utility>

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

template <class T>
constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));

/// May lie anywhere in memory.
template <class T>
struct VectorOf {
  typedef T Type __attribute__((vector_size(kVectorBytes), aligned(sizeof(T)), may_alias));
};
template <class T>
using Vector = typename VectorOf<T>::Type;

template <class T>
inline Vector<T> load(const T* from) {
  return *reinterpret_cast<const Vector<T>*>(from);
}

template <class T>
inline void store(T* to, Vector<T> value) {
  *reinterpret_cast<Vector<T>*>(to) = value;
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

/// The sum of a register's numbers, by halves.
template <class T>
inline T sum_of_lanes(Vector<T> value) {
  constexpr int kAll = kLanes<T>;
  if constexpr (kAll > 8)
    value += pick(value, value, sequence_of<kAll, [](int i) { return (i + 8) % kAll; }>());
  if constexpr (kAll > 4)
    value += pick(value, value, sequence_of<kAll, [](int i) { return (i + 4) % kAll; }>());
  if constexpr (kAll > 2)
    value += pick(value, value, sequence_of<kAll, [](int i) { return (i + 2) % kAll; }>());
  return value[0] + value[1];
}

/// from[0], from[2], from[4], ...: as many as a register has lanes. Nothing after the last of them
/// is read.
template <class T>
inline Vector<T> load_every_second(const T* from) {
  constexpr int kAll = kLanes<T>, kHalf = kAll / 2;
  constexpr auto kPicks = [](int i) { return i < kHalf ? 2 * i : kAll + 2 * (i - kHalf) + 1; };
  return pick(load(from), load(from + kAll - 1), sequence_of<kAll, kPicks>());
}

/// from[0], from[4], from[8], ...
template <class T>
inline Vector<T> load_every_fourth(const T* from) {
  constexpr int kAll = kLanes<T>, kQuarter = kAll / 4;
  // Each pick leaves its half of the result in the first lanes.
  constexpr auto kFirst = [](int i) { return 4 * i % (2 * kAll); };
  constexpr auto kLast = [](int i) {
    return i < kQuarter ? 4 * i : (kAll + 4 * (i - kQuarter) + 3) % (2 * kAll);
  };
  constexpr auto kJoin = [](int i) { return i < kAll / 2 ? i : kAll / 2 + i; };
  const Vector<T> first = pick(load(from), load(from + kAll), sequence_of<kAll, kFirst>());
  const Vector<T> last =
      pick(load(from + 2 * kAll), load(from + 3 * kAll - 3), sequence_of<kAll, kLast>());
  return pick(first, last, sequence_of<kAll, kJoin>());
}

/// Stores a[0], b[0], c[0], d[0], a[1], b[1], ...
template <class T>
inline void store_interleaved(T* to, Vector<T> a, Vector<T> b, Vector<T> c, Vector<T> d) {
  constexpr int kAll = kLanes<T>;
  constexpr auto kLow = [](int i) { return i / 2 + i % 2 * kAll; };
  constexpr auto kHigh = [](int i) { return kAll / 2 + i / 2 + i % 2 * kAll; };
  constexpr auto kLowPairs = [](int i) { return i / 4 * 2 + i % 2 + i % 4 / 2 * kAll; };
  constexpr auto kHighPairs = [](int i) { return kAll / 2 + i / 4 * 2 + i % 2 + i % 4 / 2 * kAll; };
  const Vector<T> ab_low = pick(a, b, sequence_of<kAll, kLow>());
  const Vector<T> ab_high = pick(a, b, sequence_of<kAll, kHigh>());
  const Vector<T> cd_low = pick(c, d, sequence_of<kAll, kLow>());
  const Vector<T> cd_high = pick(c, d, sequence_of<kAll, kHigh>());
  store(to, pick(ab_low, cd_low, sequence_of<kAll, kLowPairs>()));
  store(to + kAll, pick(ab_low, cd_low, sequence_of<kAll, kHighPairs>()));
  store(to + 2 * kAll, pick(ab_high, cd_high, sequence_of<kAll, kLowPairs>()));
  store(to + 3 * kAll, pick(ab_high, cd_high, sequence_of<kAll, kHighPairs>()));
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
