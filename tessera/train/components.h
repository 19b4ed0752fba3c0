#pragma once
// Connected components of a class map, of any number of spatial axes. Pixels that share a face are
// connected, as in SciPy's ndimage.label.
//
// Example:
//   keep_largest_component(classes, 2, 0);   // specks of class 2 become background

#include <ATen/ATen.h>

#include <cstdint>

namespace tessera {

/// Gives all pixels of a class the label `background` but those of its largest component; of two
/// that are equally large the first one in the order of the pixels stays. `classes` is int64 and
/// contiguous; 4 bytes for each of its pixels, which are fewer than 2^31, are taken twice.
void keep_largest_component(const at::Tensor& classes, int64_t which, int64_t background);

}  // namespace tessera
