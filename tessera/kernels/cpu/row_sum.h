#pragma once
// The sum of a row, in double.

#include <cstdint>

namespace tessera {

/// Four running sums hide the latency of one.
template <class T>
double sum_row(const T* row, int64_t size, int64_t stride = 1) {
  double sums[4] = {0, 0, 0, 0};
  int64_t i = 0;
  for (; i + 4 <= size; i += 4)
    for (int lane = 0; lane < 4; ++lane) sums[lane] += row[(i + lane) * stride];
  for (; i < size; ++i) sums[0] += row[i * stride];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

}  // namespace tessera
