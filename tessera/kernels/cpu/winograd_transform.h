#pragma once
// Winograd's F(4x4, 3x3): 4x4 outputs of a 3x3 convolution from 6x6 inputs d with 36 products
// instead of 144 (Lavin and Gray, "Fast algorithms for convolutional neural networks", 2016):
//
//   y = Aᵀ [ (G g Gᵀ) ∘ (Bᵀ d B) ] A
//
// Each transform is one of a line, along both axes. Lines are of registers: every lane is a tile of
// its own (or a channel of its own, for kernels).

#include <cstdint>

#include "tessera/kernels/cpu/vector.h"

namespace tessera::winograd {

constexpr int kOut = 4;             // outputs of a tile, along an axis
constexpr int kIn = 6;              // its inputs
constexpr int kPoints = kIn * kIn;  // products
constexpr int kKernel = 3;

/// So many numbers and a few more: points so far apart do not lie at multiples of what the sets of
/// a cache repeat after. All of them are written at once.
template <class T>
constexpr int64_t apart(int64_t numbers) {
  constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(T));
  return (numbers + 2 * kLine - 1) / (2 * kLine) * 2 * kLine + kLine;
}

/// Bᵀ d.
template <class V>
inline void transform_input(const V* d, V* to) {
  const V a = d[4] - 4 * d[2], b = d[3] - 4 * d[1];
  const V c = d[4] - d[2], e = 2 * (d[3] - d[1]);
  to[0] = 4 * d[0] - 5 * d[2] + d[4];
  to[1] = a + b;
  to[2] = a - b;
  to[3] = c + e;
  to[4] = c - e;
  to[5] = 4 * d[1] - 5 * d[3] + d[5];
}

/// Aᵀ m.
template <class V>
inline void transform_output(const V* m, V* to) {
  const V sum = m[1] + m[2], difference = m[1] - m[2];
  const V far_sum = m[3] + m[4], far_difference = m[3] - m[4];
  to[0] = m[0] + sum + far_sum;
  to[1] = difference + 2 * far_difference;
  to[2] = sum + 4 * far_sum;
  to[3] = difference + 8 * far_difference + m[5];
}

/// A y: from gradients of outputs to those of products.
template <class V>
inline void transform_output_gradient(const V* y, V* to) {
  const V even = y[0] + y[2], odd = y[1] + y[3];
  const V far_even = y[0] + 4 * y[2], far_odd = 2 * y[1] + 8 * y[3];
  to[0] = y[0];
  to[1] = even + odd;
  to[2] = even - odd;
  to[3] = far_even + far_odd;
  to[4] = far_even - far_odd;
  to[5] = y[3];
}

/// G g.
template <class T, class V>
inline void transform_kernel(const V* g, V* to) {
  constexpr T kSixth = T(1) / 6, kTwelfth = T(1) / 12, kTwentyFourth = T(1) / 24;
  const V even = g[0] + g[2], far_even = kTwentyFourth * g[0] + kSixth * g[2];
  to[0] = T(0.25) * g[0];
  to[1] = -kSixth * (even + g[1]);
  to[2] = -kSixth * (even - g[1]);
  to[3] = far_even + kTwelfth * g[1];
  to[4] = far_even - kTwelfth * g[1];
  to[5] = g[2];
}

/// Gᵀ u: from gradients of transformed kernels to those of kernels.
template <class T, class V>
inline void transform_kernel_gradient(const V* u, V* to) {
  constexpr T kSixth = T(1) / 6, kTwelfth = T(1) / 12, kTwentyFourth = T(1) / 24;
  const V near = u[1] + u[2], far = u[3] + u[4];
  to[0] = T(0.25) * u[0] - kSixth * near + kTwentyFourth * far;
  to[1] = kSixth * (u[2] - u[1]) + kTwelfth * (u[3] - u[4]);
  to[2] = kSixth * (far - near) + u[5];
}

/// `line` along both axes of kFrom x kFrom registers: to[i * kTo + j] = ...
template <int kFrom, int kTo, class V, class Load, class Line, class Store>
inline void transform_square(Load&& load_at, Line&& line, Store&& store_at) {
  V half[kTo][kFrom];
  for (int column = 0; column < kFrom; ++column) {
    V from[kFrom], to[kTo];
    for (int row = 0; row < kFrom; ++row) from[row] = load_at(row * kFrom + column);
    line(from, to);
    for (int row = 0; row < kTo; ++row) half[row][column] = to[row];
  }
  for (int row = 0; row < kTo; ++row) {
    V to[kTo];
    line(half[row], to);
    for (int column = 0; column < kTo; ++column) store_at(row * kTo + column, to[column]);
  }
}

}  // namespace tessera::winograd
