#include "tessera/lower/edges.h"

#include <algorithm>

#include "tessera/base/error.h"

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

/// Serves a strided reading from the homes alone, where no piece of it needs a halo.
bool read_directly(const Layout& layout, const Layout& out, UsePlan* use) {
  use->home_pieces.assign(out.num_pieces(), -1);
  for (int q = 0; q < out.num_pieces(); ++q) {
    if (use->needed[q].empty()) continue;
    use->home_pieces[q] = holding_piece(layout, use->needed[q], out.piece(q).rank, q);
    if (use->home_pieces[q] < 0) return false;
  }
  return true;
}

/// The buffers that a reading asks for. A strided reading takes a larger one that also holds the
/// piece, so that it can be the home.
std::vector<Need> needs_of(const Layout& layout, const Layout& out, const UsePlan& use,
                           InputAccess access) {
  std::vector<Need> needs;
  for (int q = 0; q < out.num_pieces(); ++q) {
    Box box = use.needed[q];
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

int find_or_add_group(ValuePlan* value, const std::vector<Need>& needs, InputAccess access) {
  for (size_t g = 0; g < value->groups.size(); ++g)
    if (serves(value->groups[g], needs, access)) return static_cast<int>(g);
  EdgeGroup group;
  group.access = access;
  group.needs = needs;
  group.moves = Transfer(value->layout, needs).moves();
  group.in_place.assign(needs.size(), false);
  for (size_t q = 0; q < needs.size(); ++q) {
    const bool same_place = static_cast<int>(needs.size()) == value->layout.num_pieces() &&
                            needs[q].rank == value->layout.piece(q).rank;
    const Box& piece = same_place ? value->layout.piece(q).box : Box();
    group.covers_piece.push_back(same_place && !piece.empty() && !needs[q].box.empty() &&
                                 needs[q].box.contains(piece));
  }
  value->groups.push_back(std::move(group));
  return static_cast<int>(value->groups.size() - 1);
}

/// The first group (dense ones come first) whose buffers can hold pieces becomes their home. A
/// kernel that returns dense tensors can only be adopted where there are no margins.
void choose_homes(ValuePlan* value, OutputAccess producer) {
  for (const Piece& piece : value->layout.pieces()) value->home_boxes.push_back(piece.box);
  for (EdgeGroup& group : value->groups) {
    bool any = false;
    for (size_t q = 0; q < group.needs.size(); ++q) {
      if (!group.covers_piece[q]) continue;
      const bool margins = !(group.needs[q].box == value->layout.piece(q).box);
      if (margins && producer != OutputAccess::kWritesView) continue;
      group.in_place[q] = any = true;
      value->home_boxes[q] = group.needs[q].box;
    }
    if (any) return;
  }
}

void plan_uses(const PlacedGraph& placed, const Value& value, InputAccess access, ValuePlan* plan) {
  for (size_t u = 0; u < value.uses.size(); ++u) {
    const Node& node = placed.graph.node(value.uses[u].node);
    if (node.op->input_access(value.uses[u].input) != access) continue;
    const Layout& out = placed.values[node.output].layout;
    UsePlan& use = plan->uses[u];
    for (const Piece& piece : out.pieces())
      use.needed.push_back(piece.box.empty()
                               ? Box(std::vector<Range>(value.type.num_axes()))
                               : node.op->needed(value.uses[u].input, piece.box, node.types));
    if (access == InputAccess::kStrided && read_directly(plan->layout, out, &use)) continue;
    use.group = find_or_add_group(plan, needs_of(plan->layout, out, use, access), access);
    ++plan->groups[use.group].num_uses;
  }
}

Layout layout_of_value(const PlacedGraph& placed, const Placement& placement, ValueId id) {
  const Value& value = placed.graph.value(id);
  for (const Axis& axis : value.type.axes)
    if (axis.kind == AxisKind::kPart) {
      const ValueId source = placed.graph.node(value.producer).inputs[0];
      return placement.layout_of_parts(value.type, placed.values[source].layout);
    }
  return placement.layout_of(value.type);
}

}  // namespace

const UsePlan& PlacedGraph::use(NodeId node, int input) const {
  const ValueId value = graph.node(node).inputs[input];
  const std::vector<Use>& uses = graph.value(value).uses;
  const auto found = std::find(uses.begin(), uses.end(), Use{node, input});
  TESSERA_CHECK(found != uses.end(), "node {} does not read value {}", node, value);
  return values[value].uses[found - uses.begin()];
}

PlacedGraph place(Graph graph, const Plan& plan) {
  PlacedGraph placed;
  placed.graph = std::move(graph);
  const Placement placement(placed.graph, plan);
  const int num_values = static_cast<int>(placed.graph.values().size());
  placed.values.resize(num_values);
  for (ValueId id = 0; id < num_values; ++id)
    placed.values[id].layout = layout_of_value(placed, placement, id);
  for (ValueId id = 0; id < num_values; ++id) {
    const Value& value = placed.graph.value(id);
    ValuePlan& value_plan = placed.values[id];
    value_plan.uses.resize(value.uses.size());
    plan_uses(placed, value, InputAccess::kDense, &value_plan);
    plan_uses(placed, value, InputAccess::kStrided, &value_plan);
    choose_homes(&value_plan, value.producer < 0
                                  ? OutputAccess::kWritesView
                                  : placed.graph.node(value.producer).op->output_access());
    for (EdgeGroup& group : value_plan.groups) {
      group.channel = placed.num_channels;
      placed.num_channels += 2;
    }
  }
  return placed;
}

}  // namespace tessera
