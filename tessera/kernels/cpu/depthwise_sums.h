#pragma once
// Sums of shifted rows in registers: the inner loops of depthwise convolutions. Each number is
// summed in the order of its terms, wherever it stands, so that bits do not depend on how planes
// are cut.

#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "tessera/kernels/cpu/elementary.h"

namespace tessera {

/// What a tap contributes: its weight, and where it reads for the first position.
template <class T>
struct ShiftedTerm {
  const T* at = nullptr;
  T weight = 0;
};

/// A register of every kStep-th number.
template <int kStep, class T>
inline Vector<T> load_strided(const T* from) {
  if constexpr (kStep == 1)
    return load(from);
  else
    return load_every_second(from);
}

template <int kStep, int kVectors, class T>
inline void sum_vectors(std::span<const ShiftedTerm<T>> terms, T start, int64_t shift, T* to) {
  Vector<T> sums[kVectors];
  for (Vector<T>& sum : sums) sum = Vector<T>{} + start;
  for (const ShiftedTerm<T>& term : terms) {
    const T* from = term.at + shift;
#pragma GCC unroll 8
    for (int i = 0; i < kVectors; ++i)
      sums[i] += term.weight * load_strided<kStep>(from + i * kStep * kLanes<T>);
  }
#pragma GCC unroll 8
  for (int i = 0; i < kVectors; ++i) store(to + i * kLanes<T>, sums[i]);
}

/// to[j] = start + Σ weight * at[shift + j * kStep] for j < width, which is a register at least.
template <int kStep, class T>
void sum_row(std::span<const ShiftedTerm<T>> terms, T start, int64_t shift, T* to, int64_t width) {
  constexpr int64_t kAll = kLanes<T>;
  int64_t j = 0;
  const auto sum = [&]<int kVectors>(std::integral_constant<int, kVectors>) {
    sum_vectors<kStep, kVectors>(terms, start, shift + j * kStep, to + j);
    j += kVectors * kAll;
  };
  while (j + 8 * kAll <= width) sum(std::integral_constant<int, 8>());
  if (j + 4 * kAll <= width) sum(std::integral_constant<int, 4>());
  if (j + 2 * kAll <= width) sum(std::integral_constant<int, 2>());
  if (j + kAll <= width) sum(std::integral_constant<int, 1>());
  if (j == width) return;
  j = width - kAll;  // the last register begins before the end of the one before it
  sum(std::integral_constant<int, 1>());
}

/// Some rows of windows of k x k neighbours, which share what they read. Terms are squares of k x k
/// each, one after the other; rows of the input are `pitch` apart.
template <class T, int kSquare, int kRows, int kVectors>
inline void sum_squares(std::span<const ShiftedTerm<T>> terms, T start, int64_t shift,
                        int64_t pitch, T* to, int64_t to_pitch) {
  constexpr int kStep = kLanes<T>;
  Vector<T> sums[kRows][kVectors];
  for (auto& row : sums)
    for (Vector<T>& sum : row) sum = Vector<T>{} + start;
  for (size_t first = 0; first < terms.size(); first += kSquare * kSquare) {
    const ShiftedTerm<T>* square = &terms[first];
    const T* from = square->at + shift;
#pragma GCC unroll 16
    for (int row = 0; row < kRows + kSquare - 1; ++row, from += pitch)
#pragma GCC unroll 8
      for (int w = 0; w < kSquare; ++w) {
        Vector<T> read[kVectors];
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) read[v] = load(from + w + v * kStep);
#pragma GCC unroll 8
        for (int i = 0; i < kRows; ++i) {
          if (row < i || row - i >= kSquare) continue;
          const Vector<T> weight = Vector<T>{} + square[(row - i) * kSquare + w].weight;
#pragma GCC unroll 4
          for (int v = 0; v < kVectors; ++v) sums[i][v] += weight * read[v];
        }
      }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) store(to + i * to_pitch + v * kStep, sums[i][v]);
}

/// `rows` x `width` sums, a register wide at least.
template <class T, int kSquare>
void sum_square_rows(std::span<const ShiftedTerm<T>> terms, T start, int64_t pitch, T* to,
                     int64_t to_pitch, int64_t rows, int64_t width) {
  constexpr int kRows = 4, kStep = kLanes<T>;
  int64_t row = 0;
  for (; row + kRows <= rows; row += kRows) {
    T* out = to + row * to_pitch;
    int64_t j = 0;
    for (; j + 2 * kStep <= width; j += 2 * kStep)
      sum_squares<T, kSquare, kRows, 2>(terms, start, row * pitch + j, pitch, out + j, to_pitch);
    for (; j < width; j += kStep) {
      const int64_t at = std::min(j, width - kStep);
      sum_squares<T, kSquare, kRows, 1>(terms, start, row * pitch + at, pitch, out + at, to_pitch);
    }
  }
  for (; row < rows; ++row) sum_row<1>(terms, start, row * pitch, to + row * to_pitch, width);
}

/// The last `count` numbers of a register, with zeros before them.
template <class T>
inline Vector<T> load_last(const T* from, int64_t count) {
  static constexpr auto kKept = [] {
    std::array<T, 2 * kLanes<T>> kept{};
    for (int i = kLanes<T>; i < 2 * kLanes<T>; ++i) kept[i] = 1;
    return kept;
  }();
  return load(&kKept[count]) != T(0) ? load(from) : Vector<T>{};
}

/// sums[k] += Σ other[i * other_pitch + j] * terms[k].at[i * pitch + j * kStep] over `rows` x
/// `width`, which is a register at least.
template <int kStep, int kTerms, class T>
void add_shifted_dots(const ShiftedTerm<T>* terms, int64_t pitch, const T* other,
                      int64_t other_pitch, int64_t rows, int64_t width, double* sums) {
  constexpr int64_t kAll = kLanes<T>;
  Vector<T> dots[kTerms] = {};
  const auto add = [&](Vector<T> factor, int64_t at) {
#pragma GCC unroll 16
    for (int k = 0; k < kTerms; ++k) dots[k] += factor * load_strided<kStep>(terms[k].at + at);
  };
  for (int64_t row = 0; row < rows; ++row, other += other_pitch) {
    int64_t j = 0;
    for (; j + kAll <= width; j += kAll) add(load(other + j), row * pitch + j * kStep);
    if (j < width)
      add(load_last(other + width - kAll, width - j), row * pitch + (width - kAll) * kStep);
  }
#pragma GCC unroll 16
  for (int k = 0; k < kTerms; ++k) sums[k] += sum_of_lanes<T>(dots[k]);
}

/// As many dot products at a time as there are registers for.
template <int kStep, class T>
void add_shifted_dots(std::span<const ShiftedTerm<T>> terms, int64_t pitch, const T* other,
                      int64_t other_pitch, int64_t rows, int64_t width, double* sums) {
  constexpr int kMost = kNumRegisters == 32 ? 13 : 9;
  using Add =
      void (*)(const ShiftedTerm<T>*, int64_t, const T*, int64_t, int64_t, int64_t, double*);
  static constexpr auto kByCount = []<int... kCounts>(std::integer_sequence<int, kCounts...>) {
    return std::array<Add, kMost>{add_shifted_dots<kStep, kCounts + 1, T>...};
  }
  (std::make_integer_sequence<int, kMost>());
  const size_t rounds = (terms.size() + kMost - 1) / kMost;
  for (size_t round = 0; round < rounds; ++round) {
    const size_t first = round * terms.size() / rounds;
    const size_t count = (round + 1) * terms.size() / rounds - first;
    kByCount[count - 1](&terms[first], pitch, other, other_pitch, rows, width, sums + first);
  }
}

}  // namespace tessera
