#pragma once
// The steps of a chain of layers, and the arithmetic of its multigrid solve. All values have one
// shape. Products and sums are rounded one by one, wherever an element lies: the same layer gives
// the same bits in every sweep.

#include <memory>
#include <optional>
#include <string>

#include "tessera/graph/graph.h"

namespace tessera {

/// state + size * change.
ValueId chain_step(Graph& graph, ValueId state, ValueId change, const std::string& name,
                   double size);

/// The operator of a step.
std::shared_ptr<const Op> scaled_step(double size);

/// What a step multiplies the change by: 1 where `op` is a plain sum. None for other operators.
std::optional<double> step_size(const Op& op);

/// factor * x.
std::shared_ptr<const Op> scaled(double factor);

/// arrived + (now - left), without a gradient. Where `now` is `left`, to the bit, it is `arrived`.
ValueId correction(Graph& graph, ValueId arrived, ValueId now, ValueId left,
                   const std::string& name);

/// The state u. Its gradient is given to `sweeps`, too: changes whose backward is a solve for the
/// gradients inside the chain that u is the end of.
ValueId turning_point(Graph& graph, ValueId u, ValueId sweeps, const std::string& name);

}  // namespace tessera
