#pragma once
// Where a tensor holds NaN or Inf. The trainer asks this of the boxes it loads, so that bad data is
// reported where it lies and not as a loss that became NaN.

#include <ATen/ATen.h>

#include <optional>

#include "tessera/geometry/box.h"

namespace tessera {

/// The position of the first element (row major) that is not finite. Without a temporary, for host
/// tensors of any strides.
std::optional<Shape> first_non_finite(const at::Tensor& tensor);

}  // namespace tessera
