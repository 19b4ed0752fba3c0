#pragma once
// Tensors that are computed from weights, and their views, which share memory: what the code writes
// into one of them, all others see. `bias = qkv.bias.clone(); bias[8:16].zero_()` changes a part of
// `bias`.

#include <memory>
#include <string>
#include <vector>

#include "tessera/import/weight_expression.h"

namespace tessera {

using ComputedPointer = std::shared_ptr<ComputedSymbol>;

/// With memory of its own.
ComputedPointer computed_weight(ExpressionPointer expression);

/// As the steps see it: reshape, permute, expand, slice, detach.
ComputedPointer weight_view(const ComputedPointer& x, const std::vector<WeightStep>& steps);

/// Why nothing may be written into it; empty: it may.
std::string why_not_writable(const ComputedSymbol& x);

/// Throws InvalidInput where the value does not broadcast to the tensor's shape.
void write_weight(const ComputedPointer& x, ExpressionPointer value);

}  // namespace tessera
