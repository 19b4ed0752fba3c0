#include "tessera/planner/balance_rank_graph.h"

#include <algorithm>
#include <map>

#include "tessera/base/error.h"
#include "tessera/lower/edges.h"
#include "tessera/lower/keep.h"
#include "tessera/lower/rewrite.h"
#include "tessera/planner/balance_places.h"

namespace tessera {
namespace {

constexpr int64_t kIndexBytes = 8;

/// Bytes of the first micro-batch's boxes on the rank that has most.
class LargestRank {
 public:
  void add(int rank, const Box& box) {
    if (!box.empty()) elements_[rank] += box.volume();
  }
  double bytes(int64_t element_bytes) const {
    int64_t most = 0;
    for (const auto& [rank, elements] : elements_) most = std::max(most, elements);
    return static_cast<double>(most * element_bytes);
  }

 private:
  std::map<int, int64_t> elements_;
};

class RankGraphBuilder {
 public:
  RankGraphBuilder(const PlacedGraph& placed, const RankGraphOptions& options)
      : placed_(placed),
        graph_(placed.graph),
        backward_(analyse_backward(placed.graph, {.step = StepKind::kGradient})),
        options_(options) {}

  RankGraph build() {
    for (ValueId id = 0; id < static_cast<ValueId>(graph_.values().size()); ++id) add_value(id);
    for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes().size()); ++id) add_node(id);
    for (const Parameter& parameter : graph_.parameters()) {
      const int64_t copies =
          parameter.role == ParameterRole::kTrainable ? 2 + options_.optimiser_copies : 1;
      result_.parameter_bytes.push_back(
          static_cast<double>(parameter.numel() * copies * options_.real_bytes));
    }
    return std::move(result_);
  }

 private:
  int64_t element_bytes(ValueId id) const {
    return graph_.type(id).element == Element::kIndex ? kIndexBytes : options_.real_bytes;
  }
  size_t first_micro_batch(size_t count) const { return count / placed_.num_micro_batches(); }

  void add_value(ValueId id) {
    const Value& value = graph_.value(id);
    RankValue entry;
    entry.is_input = value.producer < 0;
    entry.origin = value.producer;
    entry.needs_gradient = backward_.needs_gradient[id];
    entry.is_recomputed = backward_.recomputed[id];
    std::vector<NodeId> readers;
    for (const Use& use : value.uses) readers.push_back(use.node);
    std::sort(readers.begin(), readers.end());
    readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
    if (entry.is_input && !readers.empty()) entry.origin = readers.front();
    result_.readers.push_back(std::move(readers));
    LargestRank piece;
    const std::vector<Piece>& pieces = placed_.values[id].layout.pieces();
    for (size_t i = 0; i < first_micro_batch(pieces.size()); ++i)
      piece.add(pieces[i].rank, pieces[i].box);
    entry.piece_bytes = piece.bytes(element_bytes(id));
    for (const EdgeGroup& group : placed_.values[id].groups)
      entry.groups.push_back(rank_group(id, group, entry.piece_bytes));
    entry.groups.push_back({entry.piece_bytes, entry.piece_bytes, true, true, true});
    result_.values.push_back(std::move(entry));
  }

  RankGroup rank_group(ValueId id, const EdgeGroup& group, double piece_bytes) const {
    const Box image = Box::whole(graph_.type(id).shape());
    LargestRank need, sent;
    RankGroup entry;
    const NodeId producer = graph_.value(id).producer;
    const bool writes_view =
        producer < 0 || graph_.node(producer).op->output_access() == OutputAccess::kWritesView;
    for (size_t q = 0; q < first_micro_batch(group.needs.size()); ++q) {
      const Box& box = group.needs[q].box;
      need.add(group.needs[q].rank, box);
      sent.add(group.needs[q].rank, intersect(box, image));
      if (!group.covers_piece[q]) continue;
      entry.covers_piece = true;
      if (writes_view || box == placed_.values[id].layout.piece(static_cast<int>(q)).box)
        entry.may_be_home = true;
    }
    entry.need_bytes = need.bytes(element_bytes(id));
    entry.sent_bytes = sent.bytes(element_bytes(id));
    entry.arrives_whole = entry.need_bytes == entry.sent_bytes && entry.need_bytes <= piece_bytes;
    return entry;
  }

  void add_node(NodeId id) {
    const Node& node = graph_.node(id);
    RankNode entry;
    entry.output = node.output;
    entry.stores_output = node.op->output_access() != OutputAccess::kNone;
    entry.keeps_output = node.op->keeps_output();
    entry.returns_dense = node.op->output_access() == OutputAccess::kReturnsDense;
    entry.is_loss = node.op->is_loss();
    entry.has_trainable = graph_.has_trainable(node);
    entry.parameters = node.parameters;
    entry.parameters.insert(entry.parameters.end(), node.buffers.begin(), node.buffers.end());
    for (int i = 0; i < static_cast<int>(node.inputs.size()); ++i) {
      const ValueId value = node.inputs[i];
      const int group = placed_.use(id, i).group;
      const bool passes_gradient = backward_.needs_gradient[node.output] &&
                                   backward_.needs_gradient[value] && node.op->differentiable(i);
      entry.readings.push_back({value, group >= 0 ? group : result_.values[value].direct_group(),
                                node.op->keeps_input(i), passes_gradient});
    }
    entry.saved_bytes = saved_bytes(id);
    result_.nodes.push_back(std::move(entry));
  }

  double saved_bytes(NodeId id) const {
    const Node& node = graph_.node(id);
    const std::vector<Piece>& pieces = placed_.output_layout(id).pieces();
    std::map<int, double> of_rank;
    double most = 0;
    for (size_t i = 0; i < first_micro_batch(pieces.size()); ++i) {
      if (pieces[i].box.empty()) continue;
      const Saved saved = node.op->saved(pieces[i].box, node.types);
      double& bytes = of_rank[pieces[i].rank];
      bytes += static_cast<double>(saved.numel) * static_cast<double>(c10::elementSize(saved.type));
      most = std::max(most, bytes);
    }
    return most;
  }

  const PlacedGraph& placed_;
  const Graph& graph_;
  const BackwardValues backward_;
  const RankGraphOptions& options_;
  RankGraph result_;
};

/// The node of the original graph that each node was made from, by its name.
std::vector<NodeId> origins(const Graph& rewritten, const Graph& original) {
  std::map<std::string, NodeId> by_name;
  for (NodeId id = 0; id < static_cast<NodeId>(original.nodes().size()); ++id)
    by_name[original.node(id).name] = id;
  std::vector<NodeId> nodes;
  for (const Node& node : rewritten.nodes()) {
    auto found = by_name.find(node.name);
    if (found == by_name.end() && node.name.ends_with(kPartialSuffix))
      found = by_name.find(node.name.substr(0, node.name.size() - kPartialSuffix.size()));
    TESSERA_CHECK(found != by_name.end(), "no node is the origin of node {}", node.name);
    nodes.push_back(found->second);
  }
  return nodes;
}

}  // namespace

RankGraph rank_graph(const Graph& graph, const Plan& plan, const std::vector<NodeId>& places,
                     const RankGraphOptions& options) {
  Plan alone;
  alone.data = plan.data;
  alone.space = options.grid;
  alone.pieces = plan.pieces;
  alone.micro_batches = plan.micro_batches;
  const PlacedGraph placed = place(rewrite(graph, alone), alone);
  RankGraph result = RankGraphBuilder(placed, options).build();
  const std::vector<NodeId> origin = origins(placed.graph, graph);
  for (NodeId place : places)
    result.first_node_of_place.push_back(static_cast<NodeId>(
        std::count_if(origin.begin(), origin.end(), [&](NodeId id) { return id < place; })));
  return result;
}

}  // namespace tessera
