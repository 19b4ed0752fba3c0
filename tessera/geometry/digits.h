#pragma once
// Positions along an axis as numbers of several digits, the first of which counts most: along an
// axis of 12 = 3 x 4, position 7 has the digits 1 and 3. Views that take axes apart and put them
// together in another order move digits.

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/geometry/range.h"

namespace tessera {

/// What one step of each digit means in positions: {4, 1} for 3 x 4.
std::vector<int64_t> digit_weights(std::span<const int64_t> sizes);

/// Parts that make up the range of positions, in each of which every digit has a range of its own:
/// at most 2k - 1 for k digits. [3, 9) of 3 x 4: 0 with [3, 4), 1 with [0, 4), 2 with [0, 1).
std::vector<std::vector<Range>> digit_parts(const Range& range, std::span<const int64_t> sizes);

}  // namespace tessera
