#pragma once
// Operators whose result is known without any image: arithmetic on sizes, comparisons, strings,
// lists. The input's shape is known, so `size=x.shape[2:]`, a padding computed from two shapes, or
// a loop over a list of modules is just numbers here.

#include <torch/csrc/jit/ir/ir.h>

#include <optional>
#include <vector>

#include "tessera/import/symbol.h"

namespace tessera {

/// Of a tensor that is known: the mask of an attention over windows has as many as all their
/// scores.
inline constexpr int64_t kMostKnownElements = 1 << 22;

/// The results of the node, or none where it is an operator on tensors of the network (or one that
/// Tessera does not know). Throws InvalidInput where the operator itself fails (a list index out of
/// range).
std::optional<std::vector<Symbol>> run_known(const torch::jit::Node& node,
                                             const std::vector<Symbol>& arguments);

}  // namespace tessera
