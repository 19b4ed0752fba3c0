#pragma once
// Larger tensors of smaller ones: copies along channels and space, and channels of one number.

#include "tessera/import/call.h"

namespace tessera {

/// What the code sees of an expanded tensor, as a tensor of its own.
TensorPointer copy_stretched(const Call& call, const TensorSymbol& tensor);

/// Channels of one number before and after those of x; negative counts cut channels off.
ValueId pad_channels(const Call& call, ValueId x, int64_t low, int64_t high, double number);

/// `count` positions of one number along an axis of x's value, with all other axes of x.
ValueId filled_beside(const Call& call, ValueId x, int axis, int64_t count, double number);

}  // namespace tessera
