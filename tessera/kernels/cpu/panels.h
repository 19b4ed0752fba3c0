#pragma once
// Products of small matrices in registers, from which all convolutions are made. Operands are
// packed into panels beforehand, so that a product reads memory in order.
//
//   multiply_panels:   c[i][j] = start + Σ a[l][i] b[l][j]  i < rows <= kPanelRows,
//                                                           j < kPanelColumns, or half of them
//   add_dot_products:  c[i][j] += Σ a[i][p] b[j][p]         i < kDotRows, j < kDotColumns, p <
//   length
//
// Operands may be pairs of numbers of type bf16 (bf16_pairs.h): the product of two is the sum of
// two products, and sums are float32.
//
// The order of additions does not depend on where the operands lie, nor on threads.

#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "tessera/kernels/cpu/bf16_pairs.h"

namespace tessera {

/// Two registers of columns, and as many rows as the registers have room for sums.
constexpr int kPanelRows = kNumRegisters == 32 ? 14 : 6;
template <class T>
constexpr int kPanelColumns = 2 * kLanes<T>;

/// What products of these operands are summed up in.
template <class T>
struct SumOf {
  using Type = T;
};
template <>
struct SumOf<Bf16Pair> {
  using Type = float;
};
template <class T>
using Sum = typename SumOf<T>::Type;

template <class T>
inline void add_product(Vector<Sum<T>>& sum, T a, Vector<T> b) {
  if constexpr (std::is_same_v<T, Bf16Pair>)
    sum = with_pairs_added(sum, a, b);
  else
    sum += a * b;
}

/// Where the sums start: at the numbers of an earlier product, or at one number for each row, or at
/// zero; and where they go. Sums of many products round less if parts of them start at zero and are
/// added to what is there.
template <class T>
struct PanelEnds {
  const T* from = nullptr;
  int64_t from_stride = 0;  // between rows
  const T* row_start = nullptr;
  T* to = nullptr;
  int64_t to_stride = 0;
  bool adds = false;
};

/// One product of those whose sum is wanted: rows of a and of b, so far apart. What is `fetched`
/// numbers after what is read of b is asked for meanwhile.
template <class T>
struct PanelPart {
  const T* a = nullptr;
  int64_t a_stride = 0;
  const T* b = nullptr;
  int64_t b_stride = kPanelColumns<T>;
  int64_t fetched = 0;
};

template <class T, int kRows, int kRegisters>
void multiply_rows(std::span<const PanelPart<T>> parts, int64_t depth,
                   const PanelEnds<Sum<T>>& ends) {
  constexpr int kStep = kLanes<T>;
  Vector<Sum<T>> sums[kRows][kRegisters];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    const Sum<T> start = ends.row_start != nullptr ? ends.row_start[i] : Sum<T>(0);
    const Sum<T>* from = ends.from + i * ends.from_stride;
#pragma GCC unroll 2
    for (int r = 0; r < kRegisters; ++r)
      sums[i][r] = ends.from != nullptr ? load(from + r * kStep) : Vector<Sum<T>>{} + start;
  }
  for (const PanelPart<T>& part : parts) {
    const T *a = part.a, *b = part.b;
    for (int64_t l = 0; l < depth; ++l) {
      Vector<T> columns[kRegisters];
#pragma GCC unroll 2
      for (int r = 0; r < kRegisters; ++r) {
        columns[r] = load(b + r * kStep);
        __builtin_prefetch(b + part.fetched + r * kStep);
      }
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 2
        for (int r = 0; r < kRegisters; ++r) add_product<T>(sums[i][r], a[i], columns[r]);
      a += part.a_stride;
      b += part.b_stride;
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    Sum<T>* to = ends.to + i * ends.to_stride;
#pragma GCC unroll 2
    for (int r = 0; r < kRegisters; ++r)
      store(to + r * kStep, ends.adds ? load(to + r * kStep) + sums[i][r] : sums[i][r]);
  }
}

/// The sum over all parts. a: depth x rows; b: depth x kPanelColumns, or the first register of them
/// alone: half of the products, where the other half would be of zeros.
template <class T, int kRegisters = 2>
void multiply_panels(int rows, std::span<const PanelPart<T>> parts, int64_t depth,
                     const PanelEnds<Sum<T>>& ends) {
  using Multiply = void (*)(std::span<const PanelPart<T>>, int64_t, const PanelEnds<Sum<T>>&);
  static constexpr auto kByRows = []<int... kCounts>(std::integer_sequence<int, kCounts...>) {
    return std::array<Multiply, kPanelRows>{multiply_rows<T, kCounts + 1, kRegisters>...};
  }
  (std::make_integer_sequence<int, kPanelRows>());
  kByRows[rows - 1](parts, depth, ends);
}

template <class T, int kRegisters = 2>
void multiply_panels(int rows, int64_t depth, const PanelPart<T>& part,
                     const PanelEnds<Sum<T>>& ends) {
  multiply_panels<T, kRegisters>(rows, std::span<const PanelPart<T>>(&part, 1), depth, ends);
}

constexpr int kDotRows = kNumRegisters == 32 ? 4 : 2;
constexpr int kDotColumns = kNumRegisters == 32 ? 6 : 4;

template <class T, int kRows, int kColumns>
void add_dots(int64_t length, const T* a, int64_t a_stride, const T* b, int64_t b_stride, T* c,
              int64_t c_stride) {
  Vector<T> sums[kRows][kColumns] = {};
  for (int64_t p = 0; p < length; p += kLanes<T>) {
    Vector<T> left[kRows];
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) left[i] = load(a + i * a_stride + p);
#pragma GCC unroll 8
    for (int j = 0; j < kColumns; ++j) {
      const Vector<T> right = load(b + j * b_stride + p);
#pragma GCC unroll 8
      for (int i = 0; i < kRows; ++i) sums[i][j] += left[i] * right;
    }
  }
  constexpr int kGroups = (kRows * kColumns + kLanes<T> - 1) / kLanes<T>;
  T totals[kGroups * kLanes<T>];
#pragma GCC unroll 8
  for (int group = 0; group < kGroups; ++group) {
    Vector<T> some[kLanes<T>];
#pragma GCC unroll 16
    for (int i = 0; i < kLanes<T>; ++i) {
      const int cell = group * kLanes<T> + i;
      some[i] = cell < kRows * kColumns ? sums[cell / kColumns][cell % kColumns] : Vector<T>{};
    }
    store(totals + group * kLanes<T>, sums_of_lanes<T>(some));
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < kColumns; ++j) c[i * c_stride + j] += totals[i * kColumns + j];
}

/// Rows of a and b are `length` numbers, whole registers.
template <class T>
void add_dot_products(int rows, int columns, int64_t length, const T* a, int64_t a_stride,
                      const T* b, int64_t b_stride, T* c, int64_t c_stride) {
  using Add = void (*)(int64_t, const T*, int64_t, const T*, int64_t, T*, int64_t);
  static constexpr auto kBySize = []<int... kCells>(std::integer_sequence<int, kCells...>) {
    return std::array<Add, kDotRows * kDotColumns>{
        add_dots<T, kCells / kDotColumns + 1, kCells % kDotColumns + 1>...};
  }
  (std::make_integer_sequence<int, kDotRows * kDotColumns>());
  kBySize[(rows - 1) * kDotColumns + columns - 1](length, a, a_stride, b, b_stride, c, c_stride);
}

}  // namespace tessera
