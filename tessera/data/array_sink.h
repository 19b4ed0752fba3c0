#pragma once
// Tensors into boxes of an image file that is being written, converted to the file's type.
//
// Example:
//   write_tensor(*writer, box, classes);

#include <ATen/ATen.h>

#include "tessera/images/array_writer.h"

namespace tessera {

/// `source` is a tensor of the box's shape. Throws InvalidInput for an integer that the file's type
/// cannot hold, for real numbers into a file of integers, and where the disk fails.
void write_tensor(ArrayWriter& writer, const Box& box, const at::Tensor& source);

}  // namespace tessera
