#pragma once
// Integer division that rounds down or up, also for negative numbers, where C++ rounds towards
// zero.

#include <cstdint>

namespace tessera {

/// The largest integer that is at most value / divisor; divisor > 0.
inline int64_t floor_div(int64_t value, int64_t divisor) {
  return value / divisor - (value % divisor < 0 ? 1 : 0);
}

/// The smallest integer that is at least value / divisor; divisor > 0.
inline int64_t ceil_div(int64_t value, int64_t divisor) { return -floor_div(-value, divisor); }

}  // namespace tessera
