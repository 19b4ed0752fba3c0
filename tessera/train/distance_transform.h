#pragma once
// The exact Euclidean distance of every pixel to the nearest one of a set, in any number of spatial
// axes, with a size of pixels for each axis.
//
// One axis after the other: along a line, the squared distance is the lower envelope of parabolas,
// one on each pixel, which is found in one walk (Felzenszwalb and Huttenlocher, Theory of Computing
// 8, 2012). The time grows with the number of pixels, and not with distances.
//
// Example:
//   squared_distances(mask, {4, 5}, {1.0, 0.5});   // of a 4 x 5 image

#include <cstdint>
#include <vector>

#include "tessera/geometry/box.h"

namespace tessera {

/// Squared distances to the nearest pixel whose `mask` is not 0, the last axis fastest; infinite
/// where there is none. `spacing` has a size for each axis of `shape`.
std::vector<double> squared_distances(const std::vector<uint8_t>& mask, const Shape& shape,
                                      const std::vector<double>& spacing);

}  // namespace tessera
