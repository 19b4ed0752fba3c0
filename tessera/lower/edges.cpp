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

/// Where the moves of each micro-batch begin: they are sorted by need.
std::vector<size_t> first_moves(const EdgeGroup& group, int micro_batches) {
  const int per_micro_batch = static_cast<int>(group.needs.size()) / micro_batches;
  std::vector<size_t> first(micro_batches + 1, group.moves.size());
  for (size_t i = group.moves.size(); i-- > 0;)
    for (int m = group.moves[i].need / per_micro_batch; m >= 0 && first[m] > i; --m) first[m] = i;
  return first;
}

int find_or_add_group(ValuePlan* value, const std::vector<Need>& needs, InputAccess access,
                      int micro_batches) {
  for (size_t g = 0; g < value->groups.size(); ++g)
    if (serves(value->groups[g], needs, access)) return static_cast<int>(g);
  EdgeGroup group;
  group.access = access;
  group.needs = needs;
  group.moves = Transfer(value->layout, needs).moves();
  group.first_move = first_moves(group, micro_batches);
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
    use.group = find_or_add_group(plan, needs_of(plan->layout, out, use, access), access,
                                  placed.num_micro_batches());
  }
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

const UsePlan& PlacedGraph::use(NodeId node, int input) const {
  const ValueId value = graph.node(node).inputs[input];
  const std::vector<Use>& uses = graph.value(value).uses;
  const auto found = std::find(uses.begin(), uses.end(), Use{node, input});
  TESSERA_CHECK(found != uses.end(), "node {} does not read value {}", node, value);
  return values[value].uses[found - uses.begin()];
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
      placed.num_channels += 2 * placed.num_micro_batches();
    }
  }
  return placed;
}

}  // namespace tessera
