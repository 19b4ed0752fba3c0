#pragma once
// The one rule that cuts an axis into parts.

#include <cstdint>

#include "tessera/geometry/range.h"

namespace tessera {

/// Part `index` of `parts` of [0, size): balanced, cut on multiples of `align` where that leaves no
/// part empty; otherwise on multiples of the largest divisor of `align` that leaves none empty, and
/// of 1 where none does (then some parts are empty). A function of its arguments alone, so values
/// of one size and stride are always cut alike. Nested: part i of s is the union of the parts i*p
/// ... (i+1)*p-1 of s*p, whenever both are cut with the same effective alignment. Where the size is
/// not a multiple of the alignment, the last part takes the incomplete unit; sizes of parts then
/// differ by at most the alignment. Throws InvalidInput for size < 0, parts < 1, align < 1 or an
/// index outside [0, parts).
Range split(int64_t size, int64_t parts, int64_t index, int64_t align = 1);

/// The alignment that `split` really uses.
int64_t effective_align(int64_t size, int64_t parts, int64_t align);

}  // namespace tessera
