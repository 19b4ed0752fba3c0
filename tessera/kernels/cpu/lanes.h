#pragma once
// Sums of many terms in float64. The compiler may not change the order of one sum, so it leaves it
// scalar, one addition after the other; 32 sums side by side are a few vector registers that do not
// wait for each other. Term i belongs to sum i % 32 whatever the registers are, so bits are the
// same everywhere.
//
// Example: the sum of a row's squares
//   Lanes squares;
//   add_terms(n, [&](int64_t i, auto count) {
//     const Vector<double> x = widened<T>(load_few(row + i, count));
//     return Terms<1>{x * x};
//   }, squares);

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "tessera/kernels/cpu/bf16_registers.h"

namespace tessera {

/// Independent partial sums.
struct Lanes {
  static constexpr int kCount = 32;
  static constexpr int kGroups = kCount / kLanes<double>;
  Vector<double> value[kGroups] = {};

  /// Halves are added to each other until one number is left.
  double sum() const {
    Vector<double> groups[kGroups];
#pragma GCC unroll 16
    for (int group = 0; group < kGroups; ++group) groups[group] = value[group];
#pragma GCC unroll 4
    for (int half = kGroups / 2; half > 0; half /= 2)
#pragma GCC unroll 8
      for (int group = 0; group < half; ++group) groups[group] += groups[group + half];
    double total[kLanes<double>];
    store(total, groups[0]);
#pragma GCC unroll 4
    for (int half = kLanes<double> / 2; half > 0; half /= 2)
#pragma GCC unroll 8
      for (int lane = 0; lane < half; ++lane) total[lane] += total[lane + half];
    return total[0];
  }
};

/// As many numbers as a register has float64 ones.
template <class T>
struct FewOf {
  typedef T Type
      __attribute__((vector_size(kLanes<double> * sizeof(T)), aligned(sizeof(T)), may_alias));
};
template <class T>
using Few = typename FewOf<Number<T>>::Type;

typedef uint16_t FewNarrowBits
    __attribute__((vector_size(2 * kLanes<double>), aligned(2), may_alias));
typedef uint32_t FewBits __attribute__((vector_size(4 * kLanes<double>)));

using AllLanes = std::integral_constant<int64_t, kLanes<double>>;

/// The first `count` numbers, and zeros.
template <class T, class Count>
inline Few<T> load_few(const T* from, Count count) {
  if constexpr (std::is_same_v<Count, AllLanes> && std::is_same_v<T, Bf16>) {
    const auto bits = *reinterpret_cast<const FewNarrowBits*>(from);
    return (Few<T>)(__builtin_convertvector(bits, FewBits) << 16);
  } else if constexpr (std::is_same_v<Count, AllLanes>) {
    return *reinterpret_cast<const Few<T>*>(from);
  } else {
    const Vector<T> some = load_between(from, 0, count);
    Few<T> few;
    std::memcpy(&few, &some, sizeof(few));
    return few;
  }
}

template <class T>
inline Vector<double> widened(const Few<T>& numbers) {
  return __builtin_convertvector(numbers, Vector<double>);
}

/// The first `count` numbers, and zeros.
template <class Count>
inline Vector<double> only(const Vector<double>& numbers, Count count) {
  if constexpr (std::is_same_v<Count, AllLanes>) return numbers;
  return blend_between<double>(Vector<double>{}, numbers, 0, count);
}

/// A register of terms for each of some sums.
template <int kSums>
struct Terms {
  Vector<double> of_sum[kSums];
};

/// Adds terms(i, count), a register of terms for each of the sums, for the numbers i .. i + count -
/// 1 of n. The count is AllLanes but for the last.
template <class MakeTerms, class... Sums>
inline void add_terms(int64_t n, MakeTerms&& terms, Sums&... sums) {
  constexpr int kSums = sizeof...(Sums);
  Lanes* const all[kSums] = {&sums...};
  Vector<double> local[kSums][Lanes::kGroups];  // the compiler keeps these in registers
#pragma GCC unroll 4
  for (int s = 0; s < kSums; ++s)
#pragma GCC unroll 16
    for (int group = 0; group < Lanes::kGroups; ++group) local[s][group] = all[s]->value[group];
  const auto add = [&](int group, int64_t i, auto count) {
    const Terms<kSums> more = terms(i, count);
#pragma GCC unroll 4
    for (int s = 0; s < kSums; ++s) local[s][group] += more.of_sum[s];
  };
  int64_t i = 0;
  for (; i + Lanes::kCount <= n; i += Lanes::kCount)
#pragma GCC unroll 16
    for (int group = 0; group < Lanes::kGroups; ++group)
      add(group, i + group * kLanes<double>, AllLanes());
#pragma GCC unroll 16
  for (int group = 0; group < Lanes::kGroups; ++group, i += kLanes<double>)
    if (n - i >= kLanes<double>)
      add(group, i, AllLanes());
    else if (n > i)
      add(group, i, n - i);
#pragma GCC unroll 4
  for (int s = 0; s < kSums; ++s)
#pragma GCC unroll 16
    for (int group = 0; group < Lanes::kGroups; ++group) all[s]->value[group] = local[s][group];
}

}  // namespace tessera
