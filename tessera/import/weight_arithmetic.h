#pragma once
// Arithmetic of a tensor of the network with a weight, a constant, or what is computed from
// weights.

#include "tessera/import/call.h"
#include "tessera/ops/pointwise/arithmetic.h"

namespace tessera {

/// x (how) weight, where `side` is the weight's; the tensor's view stays. The weight's axes are
/// those that the code sees, aligned at the right.
ValueId with_weight(Call& call, const TensorSymbol& x, Arithmetic how, const Symbol& weight,
                    ParameterOperand::Side side);

}  // namespace tessera
