#pragma once
// Products of tensors that sum over axes, as einsum writes them: each axis of the code has a name,
// axes of one name go along each other, and what the result does not have is summed over. Matrix
// products are written this way, whatever their rows and columns are: pixels, channels, heads.

#include <string>

#include "tessera/import/call.h"

namespace tessera {

/// "bij,bjk->bik", one letter for each axis. Axes of size 1 stretch where the other tensor has the
/// letter, too. Refuses what it cannot say.
TensorPointer contracted(Call& call, const TensorPointer& a, const std::string& letters_a,
                         const TensorPointer& b, const std::string& letters_b,
                         const std::string& letters_out);

}  // namespace tessera
