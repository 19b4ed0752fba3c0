#pragma once
// Larger tensors of smaller ones: copies along channels and space, and channels of one number.

#include "tessera/import/call.h"

namespace tessera {

/// What the code sees of an expanded tensor, as a tensor of its own.
TensorPointer copy_stretched(const Call& call, const TensorSymbol& tensor);

/// Channels of one number before and after those of x; negative counts cut channels off.
ValueId pad_channels(const Call& call, ValueId x, int64_t low, int64_t high, double number);

/// A made tensor of one number that is joined with `other` along `axis`.
ValueId filled_beside(const Call& call, const MadeSymbol& made, const TensorSymbol& other,
                      int axis);

}  // namespace tessera
