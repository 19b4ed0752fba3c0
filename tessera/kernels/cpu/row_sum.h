#pragma once
// The sum of a row, in double.

#include <cstdint>

#include "tessera/kernels/cpu/elementary.h"
#include "tessera/kernels/cpu/lanes.h"

namespace tessera {

/// `count` neighbours, the first of which are whole registers of doubles, four running sums of
/// them.
template <class T>
double sum_whole_registers(const T* row, int64_t count) {
  Vector<double> sums[4] = {};
  for (int64_t i = 0; i < count; i += 4 * kLanes<double>)
    for (int k = 0; k < 4; ++k)
      sums[k] += widened<T>(load_few(row + i + k * kLanes<double>, AllLanes()));
  return sum_of_lanes<double>((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

/// Several running sums hide the latency of one.
template <class T>
double sum_row(const T* row, int64_t size, int64_t stride = 1) {
  constexpr int64_t kWhole = 4 * kLanes<double>;
  const int64_t whole = stride == 1 ? size / kWhole * kWhole : 0;
  double sums[4] = {whole > 0 ? sum_whole_registers(row, whole) : 0, 0, 0, 0};
  int64_t i = whole;
  for (; i + 4 <= size; i += 4)
    for (int lane = 0; lane < 4; ++lane) sums[lane] += row[(i + lane) * stride];
  for (; i < size; ++i) sums[0] += row[i * stride];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

}  // namespace tessera
