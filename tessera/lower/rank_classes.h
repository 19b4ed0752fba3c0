#pragma once
// Ranks whose programs are alike: of the same shape, with messages of the same sizes, and different
// in nothing but where in the image they are and what their peers are called. The interior of a
// grid is one class, each edge and corner another. One program tells what all of its class hold and
// send, except in reductions, where a member's place among the others counts, too.

#include <vector>

#include "tessera/lower/step_plan.h"

namespace tessera {

/// Every rank is in one class; ranks ascend, and classes go by their first rank.
std::vector<std::vector<int>> rank_classes(const StepPlan& step);

}  // namespace tessera
