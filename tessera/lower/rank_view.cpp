#include "tessera/lower/rank_view.h"

#include <algorithm>

namespace tessera {

RankView::RankView(const PlacedGraph& placed, int rank)
    : placed_(placed), rank_(rank), stage_(placed.plan.stage_of_rank(rank)) {
  const int micro_batches = placed.num_micro_batches();
  for (const ValuePlan& plan : placed.values) {
    Value& value = values_.emplace_back();
    value.pieces.resize(micro_batches);
    for (int piece : plan.layout.pieces_of(rank))
      value.pieces[plan.micro_batch_of(piece, micro_batches)].push_back(piece);
    for (const EdgeGroup& group : plan.groups)
      value.groups.push_back(view_of(group.needs, plan.layout));
    value.gradient_halo = view_of(plan.gradient_halo.needs, plan.layout);
  }
}

RankView::Group RankView::view_of(const std::vector<Need>& needs, const Layout& layout) const {
  const int micro_batches = placed_.num_micro_batches();
  const int num_needs = static_cast<int>(needs.size());
  const int per_micro_batch = num_needs / micro_batches;
  Group view;
  view.reads.assign(micro_batches, false);
  view.needs.resize(micro_batches);
  for (int q = 0; q < num_needs; ++q) {
    if (needs[q].rank != rank_) continue;
    view.reads[q / per_micro_batch] = true;
    if (!needs[q].box.empty()) view.needs[q / per_micro_batch].push_back(q);
  }
  view.moves = Transfer(layout, needs, rank_).moves();
  for (int m = 0; m <= micro_batches; ++m)  // they are sorted by need
    view.first_move.push_back(
        std::ranges::lower_bound(view.moves, m * per_micro_batch, {}, &Move::need) -
        view.moves.begin());
  return view;
}

bool RankView::owns(ValueId value, int micro_batch) const {
  return on_stage(placed_.plan.place_of_stage(placed_.values[value].stage, micro_batch));
}

bool RankView::runs(NodeId node, int micro_batch) const {
  return owns(placed_.graph.node(node).output, micro_batch);
}

std::span<const Move> RankView::Group::moves_of(int micro_batch) const {
  const size_t first = first_move[micro_batch];
  return std::span(moves).subspan(first, first_move[micro_batch + 1] - first);
}

}  // namespace tessera
