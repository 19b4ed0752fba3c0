#pragma once
// A network cut into stages, drawn in the terminal: nodes from left to right in the order in which
// they run, one line per resolution, so that a U-Net is a U; and what crosses between the stages.

#include <string>

#include "tessera/graph/graph.h"
#include "tessera/plan/plan.h"

namespace tessera::cli {

enum class Colours { kNone, kTerminal };

/// One letter a node, that of its stage: 0 to 9, then a to z, then *. Long networks are shown at
/// `max_columns` columns, each the stage of several nodes.
std::string draw_stages(const Graph& graph, const Plan& plan, Colours colours,
                        int max_columns = 100);

/// Which stages run what depends on each of several domains' images; empty where there is one.
std::string describe_domains(const Graph& graph, const Plan& plan);

/// The values that go from one stage to another, those that pass over others first, with their
/// bytes in a forward pass.
std::string describe_crossings(const Graph& graph, const Plan& plan, at::ScalarType real);

}  // namespace tessera::cli
