#pragma once
// Elementary functions of registers, which the compiler's vector types do not have; and of single
// numbers, for what is left over at the end of a row.

#if defined(__AVX__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "tessera/kernels/cpu/vector.h"

namespace tessera {

/// By halves, so that it takes few steps.
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

template <class T>
inline T square_root(T value) {
  return std::sqrt(value);
}

template <class T>
inline Vector<T> square_root(Vector<T> value) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4)
    return (Vector<T>)_mm512_maskz_sqrt_ps((__mmask16)-1, (__m512)value);
  else
    return (Vector<T>)_mm512_maskz_sqrt_pd((__mmask8)-1, (__m512d)value);
#elif defined(__AVX__)
  if constexpr (sizeof(T) == 4)
    return (Vector<T>)_mm256_sqrt_ps((__m256)value);
  else
    return (Vector<T>)_mm256_sqrt_pd((__m256d)value);
#else
  for (int i = 0; i < kLanes<T>; ++i) value[i] = std::sqrt(value[i]);
  return value;
#endif
}

/// exp(x) of numbers that are at most 0, as a softmax has them: within two units of the last place,
/// 0 below -708, and NaN for NaN.
///
/// x = n log 2 + r with |r| <= log(2) / 2, exp(r) by its series, and 2^n by the bits of the
/// exponent.
inline Vector<double> exponential(Vector<double> x) {
  using V = Vector<double>;
  using Bits = decltype(x < x);
  constexpr double kLog2Inverse = 1.4426950408889634;
  constexpr double kLog2High = 6.93147180369123816490e-01, kLog2Low = 1.90821492927058770002e-10;
  constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52: its last bits count ones
  const V shifted = x * kLog2Inverse + kRound;
  const V n = shifted - kRound;
  const V r = (x - n * kLog2High) - n * kLog2Low;
  constexpr double kSeries[] = {1.0 / 6227020800,
                                1.0 / 479001600,
                                1.0 / 39916800,
                                1.0 / 3628800,
                                1.0 / 362880,
                                1.0 / 40320,
                                1.0 / 5040,
                                1.0 / 720,
                                1.0 / 120,
                                1.0 / 24,
                                1.0 / 6,
                                0.5,
                                1.0,
                                1.0};
  V sum = V{} + kSeries[0];
#pragma GCC unroll 16
  for (int i = 1; i < 14; ++i) sum = sum * r + kSeries[i];
  Bits exponent;
  std::memcpy(&exponent, &shifted, sizeof(exponent));
  exponent = (exponent + 1023) << 52;
  V power;
  std::memcpy(&power, &exponent, sizeof(power));
  const V zero{};
  return x < -708.0 ? zero : sum * power;
}

/// log(x) of normal numbers from 1 on, within a few units of the last place, inf for inf and NaN
/// for NaN.
///
/// x = 2^n m with m from sqrt(1/2) to sqrt(2), and log(m) = 2 artanh((m - 1) / (m + 1)) by its
/// series.
inline Vector<double> logarithm(Vector<double> x) {
  using V = Vector<double>;
  using Bits = decltype(x < x);
  Bits bits;
  std::memcpy(&bits, &x, sizeof(bits));
  const Bits below_root = bits - 0x3FE6A09E667F3BCD;  // of sqrt(1/2)
  const Bits exponent = below_root >> 52;
  bits -= exponent << 52;
  V m;
  std::memcpy(&m, &bits, sizeof(m));
  const V n = __builtin_convertvector(exponent, V);
  const V s = (m - 1.0) / (m + 1.0), s2 = s * s;
  V sum = V{} + 1.0 / 23;
#pragma GCC unroll 16
  for (int odd = 21; odd >= 3; odd -= 2) sum = sum * s2 + 1.0 / odd;
  constexpr double kLog2High = 6.93147180369123816490e-01, kLog2Low = 1.90821492927058770002e-10;
  const V result = n * kLog2High + (2 * s + (2 * s * (s2 * sum) + n * kLog2Low));
  return x - x == 0.0 ? result : x;
}

/// Each of `count` numbers, in place.
inline void exponentiate(double* numbers, int64_t count) {
  constexpr int64_t kStep = kLanes<double>;
  int64_t i = 0;
  for (; i + kStep <= count; i += kStep) store(numbers + i, exponential(load(numbers + i)));
  if (i == count) return;
  double rest[kStep] = {};
  std::copy(numbers + i, numbers + count, rest);
  store(rest, exponential(load(rest)));
  std::copy(rest, rest + count - i, numbers + i);
}

}  // namespace tessera
