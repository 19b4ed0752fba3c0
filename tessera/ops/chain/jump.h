#pragma once
// How far the intervals of a chain that was solved are from fitting together. The last sweep walks
// each interval from a state that the cycles have found; where the interval before has arrived
// elsewhere, the state jumps:
//
//     start ── interval ──► arrived
//                             ┊ jump
//                           start ── interval ──► arrived
//
// A chain without jumps is the network, layer after layer.

#include <optional>
#include <string>
#include <vector>

#include "tessera/graph/graph.h"

namespace tessera {

/// Measures |arrived - start|² and |start|², which are summed over all jumps of a step.
void measure_jump(Graph& graph, ValueId arrived, ValueId start, const std::string& name);

/// sqrt(sum of |arrived - start|² / sum of |start|²), from the step's numbers after the loss; none
/// where no jump was measured.
std::optional<double> relative_jump(const std::vector<double>& measured);

}  // namespace tessera
