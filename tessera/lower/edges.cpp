#include "tessera/lower/edges.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/base/slow_work.h"
#include "tessera/plan/placement.h"

namespace tessera {
namespace {

/// Piece `index` of two layouts sits on the same rank: buffers of one can serve the other.
bool aligned(const Layout& a, const Layout& b, int index) {
  return a.num_pieces() == b.num_pieces() && a.piece(index).rank == b.piece(index).rank;
}

/// The piece of `layout` on `rank` that holds `box`, preferring `index`; -1 where none does.
int holding_piece(const Layout& layout, const Box& box, int rank, int index) {
  const auto holds = [&](int piece) {
    return layout.piece(piece).rank == rank && layout.piece(piece).box.contains(box);
  };
  if (index < layout.num_pieces() && holds(index)) return index;
  for (int piece : layout.pieces_of(rank))
    if (holds(piece)) return piece;
  return -1;
}

/// Whether the homes alone serve a strided reading: no piece of it needs a halo.
bool homes_serve(const Layout& layout, const Layout& out, const std::vector<Box>& needed) {
  for (int q = 0; q < out.num_pieces(); ++q)
    if (!needed[q].empty() && holding_piece(layout, needed[q], out.piece(q).rank, q) < 0)
      return false;
  return true;
}

/// The buffers that a reading asks for. A strided reading takes a larger one that also holds the
/// piece, so that it can be the home.
std::vector<Need> needs_of(const Layout& layout, const Layout& out, const std::vector<Box>& needed,
                           InputAccess access) {
  std::vector<Need> needs;
  needs.reserve(needed.size());
  for (int q = 0; q < out.num_pieces(); ++q) {
    Box box = needed[q];
    if (access == InputAccess::kStrided && !box.empty() && aligned(layout, out, q))
      box = hull(box, layout.piece(q).box);
    needs.push_back({box, out.piece(q).rank});
  }
  return needs;
}

bool serves(const EdgeGroup& group, const std::vector<Need>& needs, InputAccess access) {
  if (group.needs.size() != needs.size()) return false;
  if (access == InputAccess::kDense) return group.access == access && group.needs == needs;
  for (size_t q = 0; q < needs.size(); ++q)
    if (group.needs[q].rank != needs[q].rank || !group.needs[q].box.contains(needs[q].box))
      return false;
  return true;
}

int find_or_add_group(ValuePlan* value, std::vector<Need> needs, InputAccess access) {
  for (size_t g = 0; g < value->groups.size(); ++g)
    if (serves(value->groups[g], needs, access)) return static_cast<int>(g);
  EdgeGroup group;
  group.access = access;
  group.in_place.assign(needs.size(), false);
  for (size_t q = 0; q < needs.size(); ++q) {
    const bool same_place = static_cast<int>(needs.size()) == value->layout.num_pieces() &&
                            needs[q].rank == value->layout.piece(q).rank;
    const Box& piece = same_place ? value->layout.piece(q).box : Box();
    group.covers_piece.push_back(same_place && !piece.empty() && !needs[q].box.empty() &&
                                 needs[q].box.contains(piece));
  }
  group.needs = std::move(needs);
  value->groups.push_back(std::move(group));
  return static_cast<int>(value->groups.size() - 1);
}

/// The first group (dense ones come first) whose buffers can hold pieces becomes their home.
void choose_homes(ValuePlan* value) {
  for (size_t g = 0; g < value->groups.size() && value->home_group < 0; ++g) {
    EdgeGroup& group = value->groups[g];
    for (size_t q = 0; q < group.needs.size(); ++q) {
      if (!group.covers_piece[q]) continue;
      group.in_place[q] = true;
      value->home_group = static_cast<int>(g);
    }
  }
}

std::vector<Box> boxes_needed(const PlacedGraph& placed, const Use& use) {
  std::vector<Box> needed;
  const int num_pieces = placed.output_layout(use.node).num_pieces();
  needed.reserve(num_pieces);
  for (int q = 0; q < num_pieces; ++q) needed.push_back(placed.needed(use.node, use.input, q));
  return needed;
}

void plan_uses(const PlacedGraph& placed, const Value& value, InputAccess access, ValuePlan* plan) {
  for (size_t u = 0; u < value.uses.size(); ++u) {
    const Use& use = value.uses[u];
    if (placed.graph.node(use.node).op->input_access(use.input) != access) continue;
    const Layout& out = placed.output_layout(use.node);
    const std::vector<Box> needed = boxes_needed(placed, use);
    if (access == InputAccess::kStrided && homes_serve(plan->layout, out, needed)) continue;
    plan->group_of_use[u] =
        find_or_add_group(plan, needs_of(plan->layout, out, needed, access), access);
  }
}

/// Where the node's input and output have the same pieces and some need a halo of the gradient.
std::vector<Need> gradient_needs(const PlacedGraph& placed, const Node& node) {
  if (node.inputs.size() != 1) return {};
  const Layout& in = placed.values[node.inputs[0]].layout;
  const Layout& out = placed.values[node.output].layout;
  if (in.num_pieces() != out.num_pieces()) return {};
  std::vector<Need> needs;
  bool crosses = false;
  for (int q = 0; q < in.num_pieces(); ++q) {
    const Piece &from = in.piece(q), &to = out.piece(q);
    if (from.rank != to.rank || from.box.empty() != to.box.empty()) return {};
    needs.push_back({Box(std::vector<Range>(to.box.num_axes())), to.rank});
    if (from.box.empty()) continue;
    const std::optional<Box> reached = node.op->reached(0, from.box, node.types);
    if (!reached || reached->empty()) return {};
    needs.back().box = hull(*reached, to.box);
    crosses |= !to.box.contains(*reached);
  }
  return crosses ? needs : std::vector<Need>();
}

/// Partial results lie where the stage that computes them would have what they are parts of.
Layout layout_of_value(const PlacedGraph& placed, const Placement& placement, ValueId id) {
  const Value& value = placed.graph.value(id);
  const int stage = placed.values[id].stage;
  for (const Axis& axis : value.type.axes)
    if (axis.kind == AxisKind::kPart) {
      const ValueId source = placed.graph.node(value.producer).inputs[0];
      return placement.layout_of_parts(value.type,
                                       placement.layout_of(placed.graph.type(source), stage));
    }
  return placement.layout_of(value.type, stage);
}

/// An input of the graph belongs to the chunk, and the stage, that reads it first.
void assign_to_chunks(PlacedGraph* placed) {
  std::vector<int> chunk_of(placed->graph.nodes().size(), 0);
  for (size_t c = 0; c < placed->chunks.size(); ++c)
    for (NodeId node : placed->chunks[c].nodes) chunk_of[node] = static_cast<int>(c);
  for (size_t id = 0; id < placed->values.size(); ++id) {
    const Value& value = placed->graph.values()[id];
    int chunk = value.producer >= 0 ? chunk_of[value.producer] : -1;
    if (value.producer < 0)
      for (const Use& use : value.uses)
        chunk = chunk < 0 ? chunk_of[use.node] : std::min(chunk, chunk_of[use.node]);
    placed->values[id].chunk = std::max(chunk, 0);
    if (!placed->chunks.empty())
      placed->values[id].stage = placed->chunks[placed->values[id].chunk].stage;
  }
}

}  // namespace

int PlacedGraph::group_of(NodeId node, int input) const {
  const ValueId value = graph.node(node).inputs[input];
  const std::vector<Use>& uses = graph.value(value).uses;
  const auto found = std::find(uses.begin(), uses.end(), Use{node, input});
  TESSERA_CHECK(found != uses.end(), "node {} does not read value {}", node, value);
  return values[value].group_of_use[found - uses.begin()];
}

Box PlacedGraph::needed(NodeId id, int input, int piece) const {
  const Node& node = graph.node(id);
  const Box& box = output_layout(id).piece(piece).box;
  if (box.empty()) return Box(std::vector<Range>(node.types.inputs[input].num_axes()));
  return node.op->needed(input, box, node.types);
}

int PlacedGraph::home_piece(NodeId node, int input, int piece) const {
  const Layout& layout = values[graph.node(node).inputs[input]].layout;
  return holding_piece(layout, needed(node, input, piece), output_layout(node).piece(piece).rank,
                       piece);
}

Members PlacedGraph::all_ranks_of_node(NodeId node) const {
  Members ranks = ranks_of_node(node, 0);
  if (plan.micro_batches > 1)
    for (int rank : ranks_of_node(node, 1)) ranks.push_back(rank);
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

PlacedGraph place(Graph graph, const Plan& plan) {
  PlacedGraph placed;
  placed.graph = std::move(graph);
  placed.plan = plan;
  placed.stage_of_node = stages_of_nodes(placed.graph, plan);
  placed.chunks = make_chunks(placed.graph, placed.stage_of_node);
  const Placement placement(placed.graph, plan);
  const int num_values = static_cast<int>(placed.graph.values().size());
  placed.values.resize(num_values);
  assign_to_chunks(&placed);
  for (ValueId id = 0; id < num_values; ++id)
    placed.values[id].layout = layout_of_value(placed, placement, id);
  for (const Node& node : placed.graph.nodes()) {
    GradientHalo& halo = placed.values[node.output].gradient_halo;
    halo.needs = gradient_needs(placed, node);
    if (halo.needs.empty()) continue;
    halo.channel = placed.num_channels;
    placed.num_channels += placed.num_micro_batches();
  }
  SlowWork progress("planning", "values are placed", num_values);
  for (ValueId id = 0; id < num_values; ++id, progress.advance()) {
    const Value& value = placed.graph.value(id);
    ValuePlan& value_plan = placed.values[id];
    value_plan.group_of_use.assign(value.uses.size(), -1);
    plan_uses(placed, value, InputAccess::kDense, &value_plan);
    plan_uses(placed, value, InputAccess::kStrided, &value_plan);
    choose_homes(&value_plan);
    for (EdgeGroup& group : value_plan.groups) {
      group.channel = placed.num_channels;
      placed.num_channels += 2 * placed.num_micro_batches();
    }
  }
  return placed;
}

int64_t exchanged_elements(const ValuePlan& value) {
  int64_t total = 0;
  for (const EdgeGroup& group : value.groups) total += remote_volume(value.layout, group.needs);
  return total;
}

}  // namespace tessera
