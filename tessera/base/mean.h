#pragma once
// The mean of numbers of which some may be missing.

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace tessera {

/// Over the entries that are numbers; NaN where there are none.
inline double mean_of_numbers(const std::vector<double>& values) {
  double sum = 0;
  int64_t count = 0;
  for (double value : values)
    if (!std::isnan(value)) {
      sum += value;
      ++count;
    }
  return count == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / static_cast<double>(count);
}

}  // namespace tessera
