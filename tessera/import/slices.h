#pragma once
// Parts of tensors along an axis, as the code sees it.

#include "tessera/import/call.h"

namespace tessera {

/// Every step-th of the positions [begin, end) of an axis.
struct Positions {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t step = 1;
};

/// All of it is the tensor itself. Refuses parts of the batch.
TensorPointer part(Call& call, const TensorPointer& x, int axis, const Positions& at);

/// One position of an axis, which goes.
TensorPointer selected(Call& call, const TensorPointer& x, int axis, int64_t index);

}  // namespace tessera
