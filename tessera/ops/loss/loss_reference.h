#pragma once
// Targets as the oracles of losses want them: whole tensors of the prediction's shape.

#include "tessera/graph/op.h"

namespace tessera {

struct ReferenceTarget {
  at::Tensor values;  // real, without gradient; 0 or 1 for labels, one channel per class
  at::Tensor counts;  // bool; false where a pixel's label is ignored
};

ReferenceTarget reference_target(const ReferenceArgs& args, int64_t ignore_index);

/// The elements of `x` that count, as a vector. Not by masked_select alone: its gradient is wrong
/// in LibTorch 1.13 where `x` is not contiguous, such as after a norm with the channels last.
at::Tensor those_that_count(const at::Tensor& x, const ReferenceTarget& target);

}  // namespace tessera
