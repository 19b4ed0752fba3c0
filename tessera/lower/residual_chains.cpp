#include "tessera/lower/residual_chains.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "tessera/ops/chain/chain_arithmetic.h"
#include "tessera/ops/chain/linearised.h"

namespace tessera {
namespace {

bool is_output(const Graph& graph, ValueId value) {
  const std::vector<ValueId>& outputs = graph.outputs();
  return std::find(outputs.begin(), outputs.end(), value) != outputs.end();
}

/// The nodes between `state` and `change`; none where `change` also depends on something else.
std::optional<std::vector<NodeId>> nodes_between(const Graph& graph, ValueId state,
                                                 ValueId change) {
  std::set<NodeId> nodes;
  std::vector<ValueId> open{change};
  while (!open.empty()) {
    const ValueId value = open.back();
    open.pop_back();
    if (value == state) continue;
    const NodeId producer = graph.value(value).producer;
    if (producer < 0 || producer <= graph.value(state).producer ||
        graph.node(producer).inputs.empty())
      return std::nullopt;
    if (nodes.insert(producer).second)
      for (ValueId input : graph.node(producer).inputs) open.push_back(input);
  }
  if (nodes.empty()) return std::nullopt;
  return std::vector<NodeId>(nodes.begin(), nodes.end());
}

/// Why the nodes cannot be those of a block; empty where they can.
std::string objection(const Graph& graph, const ResidualBlock& block) {
  const auto inside = [&](NodeId node) {
    return node == block.add || std::binary_search(block.nodes.begin(), block.nodes.end(), node);
  };
  for (NodeId id : block.nodes) {
    const Node& node = graph.node(id);
    if (!can_be_linearised(node))
      return fmt::format("{} {} has no sweeps", node.op->kind(), node.name);
    const std::vector<Use>& uses = graph.value(node.output).uses;
    if (is_output(graph, node.output) ||
        !std::all_of(uses.begin(), uses.end(), [&](const Use& use) { return inside(use.node); }))
      return fmt::format("{} is read outside its block, too", node.name);
  }
  return "";
}

struct BlockOrReason {
  std::optional<ResidualBlock> block;
  std::string reason;
};

BlockOrReason block_ending_at(const Graph& graph, NodeId add) {
  const std::vector<ValueId>& inputs = graph.node(add).inputs;
  BlockOrReason found{std::nullopt, "it does not add to a state what is computed from that alone"};
  const bool is_plain =
      graph.node(add).op->kind() == "add";  // the first input of a step is the state
  for (int shortcut = 0; shortcut < (is_plain ? 2 : 1); ++shortcut) {
    ResidualBlock block{inputs[shortcut], inputs[1 - shortcut], {}, add};
    const auto nodes = nodes_between(graph, block.state, block.change);
    if (!nodes) continue;
    block.nodes = *nodes;
    found.reason = objection(graph, block);
    if (found.reason.empty()) {
      found.block = std::move(block);
      return found;
    }
  }
  return found;
}

/// Whether a block is the only reader of its state.
bool reads_alone(const Graph& graph, const ResidualBlock& block) {
  const std::vector<Use>& uses = graph.value(block.state).uses;
  return !is_output(graph, block.state) &&
         std::all_of(uses.begin(), uses.end(), [&](const Use& use) {
           return use.node == block.add ||
                  std::binary_search(block.nodes.begin(), block.nodes.end(), use.node);
         });
}

bool is_sum(const Node& node) { return step_size(*node.op).has_value(); }

}  // namespace

std::vector<ResidualChain> residual_chains(const Graph& graph) {
  std::vector<ResidualChain> chains;
  std::map<ValueId, size_t> chain_at;  // by the sum that a chain ends with so far
  for (NodeId id = 0; id < std::ssize(graph.nodes()); ++id) {
    if (!is_sum(graph.node(id))) continue;
    std::optional<ResidualBlock> block = block_ending_at(graph, id).block;
    if (!block) continue;
    const auto before = chain_at.find(block->state);
    const bool goes_on = before != chain_at.end() && reads_alone(graph, *block) &&
                         graph.type(block->state) == graph.node(id).types.output;
    const size_t chain = goes_on ? before->second : chains.size();
    if (!goes_on) chains.emplace_back();
    chain_at[graph.node(id).output] = chain;
    chains[chain].push_back(std::move(*block));
  }
  std::erase_if(chains, [](const ResidualChain& chain) { return chain.size() < 2; });
  return chains;
}

std::vector<std::string> sums_without_blocks(const Graph& graph) {
  std::vector<std::string> reasons;
  for (NodeId id = 0; id < std::ssize(graph.nodes()); ++id) {
    if (!is_sum(graph.node(id))) continue;
    const BlockOrReason found = block_ending_at(graph, id);
    if (!found.block) reasons.push_back(fmt::format("{}: {}", graph.node(id).name, found.reason));
  }
  return reasons;
}

}  // namespace tessera
