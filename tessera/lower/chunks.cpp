#include "tessera/lower/chunks.h"

#include <algorithm>
#include <map>
#include <set>

#include "tessera/base/error.h"
#include "tessera/lower/multigrid.h"
#include "tessera/lower/rewrite.h"

namespace tessera {
namespace {

int stage_of_node(const std::string& name, const Plan& plan) {
  auto found = plan.stage_of.find(name);
  const std::string layer = name.substr(0, name.rfind(kSweepMark));
  if (found == plan.stage_of.end()) found = plan.stage_of.find(layer);
  if (found == plan.stage_of.end() && layer.ends_with(kPartialSuffix))
    found = plan.stage_of.find(layer.substr(0, layer.size() - kPartialSuffix.size()));
  if (found == plan.stage_of.end())
    throw_error<InvalidInput>("[plan] stage_of does not say which stage node {} belongs to; add it",
                              name);
  if (found->second < 0 || found->second >= plan.num_stages())
    throw_error<InvalidInput>("[plan] stage_of puts node {} on stage {}; there are stages 0 to {}",
                              name, found->second, plan.num_stages() - 1);
  return found->second;
}

}  // namespace

std::vector<int> stages_of_nodes(const Graph& graph, const Plan& plan) {
  std::vector<int> stages(graph.nodes().size(), 0);
  if (plan.num_stages() == 1) return stages;
  for (size_t id = 0; id < stages.size(); ++id)
    stages[id] = stage_of_node(graph.nodes()[id].name, plan);
  return stages;
}

std::vector<Chunk> make_chunks(const Graph& graph, const std::vector<int>& stage_of_node) {
  const NodeId num_nodes = static_cast<NodeId>(graph.nodes().size());
  std::vector<int> chunk_of(num_nodes, -1);
  const auto is_ready = [&](NodeId id) {
    const std::vector<ValueId>& inputs = graph.node(id).inputs;
    return std::all_of(inputs.begin(), inputs.end(), [&](ValueId input) {
      const NodeId producer = graph.value(input).producer;
      return producer < 0 || chunk_of[producer] >= 0;
    });
  };
  std::map<ValueId, int> first_reader;  // of the graph's inputs: it has them, and gives to others
  std::vector<Chunk> chunks;
  for (NodeId first = 0; first < num_nodes; ++first) {
    if (chunk_of[first] >= 0) continue;  // all nodes before `first` have a chunk, so it is ready
    const int index = static_cast<int>(chunks.size());
    Chunk chunk;
    chunk.stage = stage_of_node[first];
    std::set<int> before;
    for (NodeId id = first; id < num_nodes; ++id) {
      if (chunk_of[id] >= 0 || stage_of_node[id] != chunk.stage || !is_ready(id)) continue;
      chunk_of[id] = index;
      chunk.nodes.push_back(id);
      for (ValueId input : graph.node(id).inputs) {
        const NodeId producer = graph.value(input).producer;
        const int from = producer >= 0 ? chunk_of[producer]
                                       : first_reader.try_emplace(input, index).first->second;
        if (from != index) before.insert(from);
      }
    }
    chunk.chunks_before.assign(before.begin(), before.end());
    chunks.push_back(std::move(chunk));
  }
  return chunks;
}

}  // namespace tessera
