#pragma once
// How far the intervals of a chain that was solved are from fitting together. The last sweep walks
// each interval from a state that the cycles have found; where the interval before has arrived
// elsewhere, the state jumps:
//
//     start ── interval ──► arrived
//                             ┊ jump
//                           start ── interval ──► arrived
//
// A chain without jumps is the network, layer after layer. In backward it is the same for the
// gradients of the states: each interval starts, at its end, with one that the adjoint cycles have
// found, and where the interval after it arrives elsewhere the gradients jump.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/graph/graph.h"

namespace tessera {

/// Measures |arrived - start|² and |start|², which are summed over all jumps of a step.
void measure_jump(Graph& graph, ValueId arrived, ValueId start, const std::string& name);

/// The state that an interval starts from, with a gradient that ends here: |gradient|² is measured.
/// What reads it besides the interval takes away what the adjoint cycles have found, so that the
/// gradient is the jump.
ValueId measured_start(Graph& graph, ValueId start, const std::string& name);

/// Of such a start: what takes away the gradient that arrives here. Measures its |gradient|².
std::shared_ptr<const Op> gradient_taken_away();

/// sqrt(sum of |arrived - start|² / sum of |start|²), from the step's numbers after the loss; none
/// where no jump was measured.
std::optional<double> relative_jump(const std::vector<double>& measured);
/// The same for the gradients.
std::optional<double> relative_jump_of_gradients(const std::vector<double>& measured);

}  // namespace tessera
