#pragma once
// Who takes part in something: a collective, a stage, the holders of a parameter.

#include <vector>

namespace tessera {

/// Ranks, ascending and without repetition.
using Members = std::vector<int>;

}  // namespace tessera
