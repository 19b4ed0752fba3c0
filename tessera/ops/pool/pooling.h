#pragma once
// Max and average pooling along one to three spatial axes, with PyTorch's rules for padding, ceil
// mode and divisors. The kernels clip each window to the image by global coordinates, so that they
// read no fill at the border of the image, and none at the border of a piece.
//
// Example:
//   ValueId y = max_pool(graph, x, "pool1", {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1}});

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/graph/graph.h"

namespace tessera {

/// Lists have one entry per spatial axis, or one for all of them.
struct PoolOptions {
  std::vector<int64_t> kernel;
  std::vector<int64_t> stride = {};  // empty: the kernel
  std::vector<int64_t> padding = {0};
  std::vector<int64_t> dilation = {1};  // max pooling only
  bool ceil_mode = false;
  // Average pooling only:
  bool count_include_pad = true;
  int64_t divisor_override = 0;  // 0: the number of elements
};

ValueId max_pool(Graph& graph, ValueId x, const std::string& name, const PoolOptions& options);
ValueId average_pool(Graph& graph, ValueId x, const std::string& name, const PoolOptions& options);

}  // namespace tessera
