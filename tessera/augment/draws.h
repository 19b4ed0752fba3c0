#pragma once
// What random changes are drawn by, whatever they change.

#include <cmath>
#include <cstdint>
#include <optional>

#include "tessera/base/random.h"

namespace tessera {

/// Whether the change is asked for and happens to this patch; the key is the change's own.
template <class Change>
bool applies(const std::optional<Change>& change, const RandomKey& key) {
  return change && key.with("applies").uniform(0) < change->probability;
}

/// Uniform in [-1, 1).
inline double to_both_sides(const RandomKey& key, uint64_t index) {
  return 2 * key.uniform(index) - 1;
}

/// From 1 / (1 + range) to 1 + range, with 1 in the middle.
inline double drawn_factor(const RandomKey& key, uint64_t index, double range) {
  return std::pow(1 + range, to_both_sides(key, index));
}

}  // namespace tessera
