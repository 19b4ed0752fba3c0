#pragma once
// Residual chains: runs of blocks u <- u + F(u) of one shape, each of which alone reads the one
// before. Seen along the layers they are steps in time, which a multigrid solve can take at once.
//
//        u0 ────────► + ── u1 ────────► + ── u2 ...
//         ╲ F0 nodes ╱      ╲ F1 nodes ╱
//
// F may hold any operators that backward can run at a point that another node has computed, and
// must read nothing but u.

#include <string>
#include <vector>

#include "tessera/graph/graph.h"

namespace tessera {

struct ResidualBlock {
  ValueId state = -1;         // u
  ValueId change = -1;        // F(u)
  std::vector<NodeId> nodes;  // of F, ascending
  NodeId add = -1;
};

/// Its blocks in order: the state of each is the sum of the one before.
using ResidualChain = std::vector<ResidualBlock>;

/// Chains of two blocks or more, in the order of their first nodes.
std::vector<ResidualChain> residual_chains(const Graph& graph);

/// Why each sum of the graph is not the end of a block, as a sentence that names it; one for each.
std::vector<std::string> sums_without_blocks(const Graph& graph);

}  // namespace tessera
