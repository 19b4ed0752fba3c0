#pragma once
// All holders of a parameter have the same bits, by construction. This makes sure of it.

#include <ATen/ATen.h>

#include <vector>

#include "tessera/comm/transport.h"
#include "tessera/lower/lower.h"

namespace tessera {

/// Collective over all ranks. `own` as Graph::parameters(), undefined where this rank holds none.
/// Throws InternalError, naming the parameter, the ranks and the step.
void check_holders_agree(Transport& transport, const Lowering& lowering,
                         const std::vector<at::Tensor>& own, int64_t step);

}  // namespace tessera
