#pragma once
// Blur of pictures that are drawn box by box: each pixel becomes a mean of those around it along
// every axis, weighted by the binomial coefficients (1 2 1, 1 4 6 4 1, ...), which come near to a
// Gaussian of deviation sqrt(radius / 2). Beyond the image its last pixels go on. The weights are
// exact and the terms of a sum have a fixed order, so a box has the bits that it has in the whole.
//
// Example:
//   const Box around = grown_within(tile, spatial, radius);
//   const std::vector<double> blurred = blur(values_of(around), around, tile, spatial, radius);

#include <vector>

#include "tessera/geometry/box.h"

namespace tessera {

/// The box with `margin` more pixels on each side, as far as the image goes.
Box grown_within(const Box& box, const Shape& image, int64_t margin);

/// `values` are those of the box `from`, row major; gives those of the box `to`, for which `from`
/// must be grown_within(to, image, radius).
std::vector<double> blur(std::vector<double> values, const Box& from, const Box& to,
                         const Shape& image, int64_t radius);

}  // namespace tessera
