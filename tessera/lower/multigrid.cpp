#include "tessera/lower/multigrid.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/graph/transform.h"
#include "tessera/lower/chain_solver.h"
#include "tessera/ops/chain/jump.h"

namespace tessera {
namespace {

constexpr int kWidestDrawing = 160;  // columns

/// Whether every sum that the chain is made of lies outside the others' blocks.
bool is_apart(const ResidualChain& chain, const std::vector<ResidualChain>& others) {
  for (const ResidualChain& other : others)
    for (const ResidualBlock& block : other)
      if (std::binary_search(block.nodes.begin(), block.nodes.end(), chain.front().add))
        return false;
  return true;
}

/// Those with a coarser level, none of which is part of another's block.
std::vector<ResidualChain> solved_chains(const Graph& graph, const Multigrid& multigrid) {
  std::vector<ResidualChain> all = residual_chains(graph), solved;
  std::ranges::stable_sort(all, std::greater<>(), [](const ResidualChain& chain) {
    return chain.back().add - chain.front().nodes.front();
  });
  int64_t longest = 0;
  for (ResidualChain& chain : all) {
    longest = std::max(longest, static_cast<int64_t>(std::ssize(chain)));
    if (std::ssize(chain) > multigrid.coarsening && is_apart(chain, solved))
      solved.push_back(std::move(chain));
  }
  if (!solved.empty()) return solved;
  std::vector<std::string> reasons = sums_without_blocks(graph);
  if (reasons.size() > 3) reasons.resize(3);
  throw_error<InvalidInput>(
      "[--multigrid] the network has no residual chain of more than {}, blocks u + F(u) of one "
      "shape, each of which alone reads the one before; its longest has {}{}{}; use a smaller "
      "coarsening, or stages and micro-batches in place of layers",
      counted(multigrid.coarsening, "block"), longest, reasons.empty() ? "" : "; ",
      fmt::join(reasons, "; "));
}

Cycle cycle_of(const ResidualChain& chain, const Multigrid& multigrid, int64_t iterations,
               SweepOrder order) {
  return make_cycle(multigrid, static_cast<int>(chain.size()), static_cast<int>(iterations), order);
}

}  // namespace

Graph with_multigrid(const Graph& graph, const Multigrid& multigrid) {
  if (multigrid.levels == 1) return graph;
  const std::vector<ResidualChain> chains = solved_chains(graph, multigrid);
  std::map<NodeId, size_t> chain_of;
  for (size_t c = 0; c < chains.size(); ++c)
    for (const ResidualBlock& block : chains[c]) {
      for (NodeId node : block.nodes) chain_of[node] = c;
      chain_of[block.add] = c;
    }
  std::map<size_t, ChainSolver> solvers;
  return transform(graph,
                   [&](Graph& result, const Node& node,
                       const std::vector<ValueId>& inputs) -> std::optional<ValueId> {
                     const auto found = chain_of.find(graph.value(node.output).producer);
                     if (found == chain_of.end()) return std::nullopt;
                     const ResidualChain& chain = chains[found->second];
                     const auto [solver, is_new] =
                         solvers.try_emplace(found->second, graph, chain, multigrid, &result);
                     if (is_new) {  // the chain's first node reads nothing but its first state
                       const auto state = std::ranges::find(node.inputs, chain.front().state);
                       TESSERA_CHECK(state != node.inputs.end(), "{} does not begin its chain",
                                     node.name);
                       solver->second.solve(inputs[state - node.inputs.begin()]);
                     }
                     return solver->second.value(node.output);
                   });
}

Graph solve_by_multigrid(const Graph& graph, const Plan& plan) {
  return plan.multigrid ? with_multigrid(graph, *plan.multigrid) : graph;
}

std::map<std::string, int> assign_layers(const Graph& graph, const Multigrid& multigrid,
                                         int slices) {
  std::vector<int> slice_of(graph.nodes().size(), -1);
  for (const ResidualChain& chain : solved_chains(graph, multigrid)) {
    Multigrid two_levels = multigrid;  // intervals are cut alike where there are no coarser levels
    two_levels.levels = 2;
    const Cycle cycle = cycle_of(chain, two_levels, 1, SweepOrder::kForward);
    if (std::ssize(cycle.intervals) < slices)
      throw_error<InvalidInput>(
          "[--layers] a chain of {} with coarsening {} has {} and cannot be cut into {} "
          "slices; use at most {}, or a smaller coarsening",
          counted(std::ssize(chain), "block"), multigrid.coarsening,
          counted(std::ssize(cycle.intervals), "interval"), slices, cycle.intervals.size());
    const std::vector<Range> layers = layer_slices(cycle, slices);
    for (int slice = 0; slice < slices; ++slice)
      for (int64_t layer = layers[slice].begin; layer < layers[slice].end; ++layer) {
        for (NodeId node : chain[layer].nodes) slice_of[node] = slice;
        slice_of[chain[layer].add] = slice;
      }
  }
  // What is before the first chain goes with it, what follows a chain with that.
  std::map<std::string, int> by_name;
  int last = 0;
  for (size_t id = 0; id < slice_of.size(); ++id) {
    if (slice_of[id] >= 0) last = slice_of[id];
    by_name[graph.nodes()[id].name] = last;
  }
  return by_name;
}

std::optional<double> solve_residual(const std::vector<double>& measured) {
  return relative_jump(measured);
}

std::optional<double> solve_gradient_residual(const std::vector<double>& measured) {
  return relative_jump_of_gradients(measured);
}

std::string draw_multigrid(const Graph& graph, const Multigrid& multigrid, int slices) {
  std::string drawing;
  for (const ResidualChain& chain : solved_chains(graph, multigrid)) {
    drawing +=
        fmt::format("{} from {} to {}; steps, by level, of each slice in time, = the last sweep\n",
                    counted(std::ssize(chain), "block"), graph.node(chain.front().add).name,
                    graph.node(chain.back().add).name);
    for (SweepOrder order : {SweepOrder::kForward, SweepOrder::kBackward}) {
      const bool forward = order == SweepOrder::kForward;
      const int64_t iterations = forward ? multigrid.forward : multigrid.backward;
      const Cycle cycle = cycle_of(chain, multigrid, iterations, order);
      const int length = length_of_cycle(cycle, slices);
      drawing += fmt::format("{}, {}: {} steps long, {} one after the other\n",
                             forward ? "forward" : "backward", counted(iterations, "V-cycle"),
                             length, chain.size());
      if (length <= kWidestDrawing) drawing += draw_cycle(cycle, slices);
    }
  }
  return drawing;
}

}  // namespace tessera
