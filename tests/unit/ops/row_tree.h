#pragma once
// Combines rows of statistics as a program may: up a tree, a few neighbours at a time. Which tree
// it is, and where in it stand the rows of zeros of those who hold nothing, is up to chance.

#include <ATen/ATen.h>

#include <functional>
#include <vector>

#include "tests/unit/ops/random_views.h"

namespace tessera {

using Rows = std::vector<at::Tensor>;
using Combine = std::function<void(const Rows& rows, const at::Tensor& combined)>;

/// The one row that is left of `rows`, of which there is at least one. It is a failure of the
/// current test where `combine` changes a row that it reads, or other bits come of rows of zeros.
at::Tensor combine_in_a_tree(Draw& draw, Rows rows, const Combine& combine);

}  // namespace tessera
