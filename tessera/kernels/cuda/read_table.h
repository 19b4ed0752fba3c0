#pragma once
// Which inputs the results of an interpolation read along an axis, in a device's memory. A network
// asks for the same few tables again and again, also from graphs that hold their addresses, so that
// a table stays for good once it is there.

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "tessera/kernels/cuda/interpolate_launch.h"

namespace tessera::cuda {

struct Term {
  int64_t index;
  double weight;
};

/// For each result along an axis, what it is the sum of.
using Terms = std::vector<std::vector<Term>>;

/// For kernels that compute in float64, or else in float32. A table that is asked for the first
/// time cannot be part of a graph's capture.
AxisReads read_table(const Terms& terms, bool in_float64, const at::Device& device);

}  // namespace tessera::cuda
