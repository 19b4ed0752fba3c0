#pragma once
// Whoever holds a parameter has the same bits as its other holders, by construction. Here we make
// sure.

#include <ATen/ATen.h>

#include <vector>

#include "tessera/comm/transport.h"
#include "tessera/lower/lower.h"

namespace tessera {

/// Collective over all ranks. `own` as Graph::parameters(), undefined where this rank holds none.
/// Throws InternalError that names the parameter, the ranks and the step.
void check_holders_agree(Transport& transport, const Lowered& lowered,
                         const std::vector<at::Tensor>& own, int64_t step);

}  // namespace tessera
