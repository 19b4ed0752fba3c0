#pragma once
// Residual chains solved by multigrid (docs/multigrid.md), as a graph: the sweeps of the cycle are
// copies of the chain's nodes with the same weights, through which no gradient flows.
//
//   V-cycles          copies of blocks, corrections          without gradients
//   last sweep        the chain's own nodes, interval by interval, each from the state that the
//                     cycles have found for its start
//   adjoint cycles    derivatives of blocks, which only backward runs (ops/chain/linearised.h):
//                     they find the gradient of the state at the end of each interval
//
// So backward goes through each interval of the last sweep by itself, from a gradient that the
// adjoint cycles have found; no weight's gradient waits for another interval. The numbers depend on
// the options alone, never on where nodes are placed.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/graph/graph.h"
#include "tessera/plan/plan.h"

namespace tessera {

/// Ends the name of a layer's node, and begins what tells its copies apart, on the same stage.
constexpr std::string_view kSweepMark = "~";

/// The graph with every residual chain of more than one interval solved by multigrid. Throws
/// InvalidInput, with what is in the way, where there is none.
Graph with_multigrid(const Graph& graph, const Multigrid& multigrid);

/// As a rewrite: what the plan says, if anything.
Graph solve_by_multigrid(const Graph& graph, const Plan& plan);

/// The plan for the network itself: what is measured of it, and evaluation, are never approximate.
inline Plan without_multigrid(Plan plan) {
  plan.multigrid.reset();
  return plan;
}

/// The slice of every node, by name: the chains' layers in `slices` parts of whole intervals, what
/// comes before a chain with its first, what follows with its last. Throws InvalidInput where there
/// are fewer intervals than slices.
std::map<std::string, int> assign_layers(const Graph& graph, const Multigrid& multigrid,
                                         int slices);

/// How well the intervals of a step fit together, from what it has measured (ops/chain/jump.h): 0
/// where they are the network, layer after layer; none where no chain was solved.
std::optional<double> solve_residual(const std::vector<double>& measured);
/// The same for the gradients' intervals; none where the options do not ask for it.
std::optional<double> solve_gradient_residual(const std::vector<double>& measured);

/// The cycles of every chain on `slices` workers (draw_cycle), and how long they are.
std::string draw_multigrid(const Graph& graph, const Multigrid& multigrid, int slices);

}  // namespace tessera
