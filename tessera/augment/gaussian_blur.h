#pragma once
// A Gaussian blur of a box of a larger array, along one axis after the other. Beyond the array's
// border its last pixels go on.

#include <vector>

#include "tessera/data/dataset.h"

namespace tessera {

/// The weights of the distances 0, 1, ... to three sigma; the whole kernel adds up to 1.
std::vector<double> gaussian_weights(double sigma);

/// What must be read for a box: so much more to all sides of space, inside the array.
Box with_halo(const Box& box, const Shape& shape, int64_t radius);

/// `read` holds the box `held` (channels x space, doubles, contiguous); returns the blurred `box`.
at::Tensor blurred(const at::Tensor& read, const Box& held, const Box& box, const Shape& shape,
                   const std::vector<double>& weights);

}  // namespace tessera
