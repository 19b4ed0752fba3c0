#include "tessera/plan/placement.h"

#include <algorithm>
#include <map>

#include "tessera/base/error.h"
#include "tessera/geometry/split.h"

namespace tessera {
namespace {

/// Calls body(index) for every multi-index below `sizes`, last axis fastest.
template <class Body>
void for_each_index(const std::vector<int64_t>& sizes, Body body) {
  std::vector<int64_t> index(sizes.size(), 0);
  while (true) {
    body(index);
    int axis = static_cast<int>(sizes.size()) - 1;
    while (axis >= 0 && ++index[axis] == sizes[axis]) index[axis--] = 0;
    if (axis < 0) return;
  }
}

Box spatial_part(const Box& box) {
  Box spatial;
  for (int axis = 2; axis < box.num_axes(); ++axis) spatial.push_back(box[axis]);
  return spatial;
}

/// Cells of one layout are disjoint: where they begin tells them apart.
std::vector<int64_t> begins_of(const Box& cell) {
  std::vector<int64_t> begins;
  for (int axis = 0; axis < cell.num_axes(); ++axis) begins.push_back(cell[axis].begin);
  return begins;
}

/// The distinct non-empty spatial boxes of a layout, numbered in list order.
struct CellNumbers {
  explicit CellNumbers(const Layout& layout) {
    for (const Piece& piece : layout.pieces()) {
      if (piece.box.empty()) continue;
      const Box cell = spatial_part(piece.box);
      if (number_of.emplace(begins_of(cell), std::ssize(cells)).second) cells.push_back(cell);
    }
  }
  std::vector<Box> cells;
  std::map<std::vector<int64_t>, int64_t> number_of;
};

}  // namespace

Placement::Placement(const Graph& graph, const Plan& plan) : plan_(plan) {
  // By index, not by count: a squeezed value may have only the second spatial axis.
  for (const Value& value : graph.values())
    for (const Axis& axis : value.type.axes)
      num_spatial_ = std::max(num_spatial_, axis.spatial_index + 1);
  for (int stage = 0; stage < plan_.num_stages(); ++stage) {
    std::vector<Ratio>& coarsest = coarsest_.emplace_back(num_spatial_, Ratio{});
    for (const Value& value : graph.values())
      for (const Axis& axis : value.type.axes)
        if (axis.kind == AxisKind::kSpatial && is_cut_on_grid(axis, stage) &&
            coarsest[axis.spatial_index] < axis.stride)
          coarsest[axis.spatial_index] = axis.stride;
  }
}

/// Whether a value's pixels are to lie whole in one part. Pooling to a few numbers, or resizing by
/// a fraction, has nothing to gain from it and would spoil the cuts of all others.
bool Placement::is_cut_on_grid(const Axis& axis, int stage) const {
  const int i = axis.spatial_index;
  return axis.stride.den == 1 && axis.size >= plan_.space_parts(stage, i) * plan_.pieces_along(i);
}

int64_t Placement::align_of(const Axis& axis, int stage) const {
  const Ratio ratio = coarsest_[stage][axis.spatial_index] / axis.stride;
  return ratio.den == 1 ? ratio.num : 1;
}

Range Placement::samples(int64_t batch, int64_t micro_batch, int64_t replica) const {
  const Range together = split(batch, plan_.micro_batches, micro_batch);
  return split(together.size(), plan_.data, replica).shifted(together.begin);
}

Layout Placement::layout_of(const ValueType& type, int stage) const {
  for (const auto& [axes, of_stage, layout] : known_)
    if (of_stage == stage && axes == type.axes) return layout;
  return std::get<Layout>(known_.emplace_back(type.axes, stage, make_layout(type, stage)));
}

Layout Placement::make_layout(const ValueType& type, int stage) const {
  std::vector<Piece> pieces;
  for (int64_t m = 0; m < plan_.micro_batches; ++m) {
    const int place = plan_.place_of_stage(stage, m);
    if (type.num_spatial() > 0)
      add_image_pieces(type, place, m, &pieces);
    else
      add_feature_pieces(type, place, m, &pieces);
  }
  return Layout(type.shape(), std::move(pieces));
}

void Placement::add_image_pieces(const ValueType& type, int stage, int64_t micro_batch,
                                 std::vector<Piece>* pieces) const {
  // Ranks run over (data, space...), pieces over (pieces...) inside each rank.
  std::vector<int64_t> rank_grid{plan_.data};
  std::vector<int64_t> piece_grid;
  for (int i = 0; i < num_spatial_; ++i) {
    rank_grid.push_back(plan_.space_parts(stage, i));
    piece_grid.push_back(plan_.pieces_along(i));
  }
  const std::vector<int> ranks = plan_.stage_ranks(stage);
  size_t next_rank = 0;
  for_each_index(rank_grid, [&](const std::vector<int64_t>& place) {
    for_each_index(piece_grid, [&](const std::vector<int64_t>& piece) {
      Box box;
      for (const Axis& axis : type.axes) {
        if (axis.kind == AxisKind::kBatch) {
          box.push_back(samples(axis.size, micro_batch, place[0]));
        } else if (axis.kind == AxisKind::kSpatial) {
          const int i = axis.spatial_index;
          box.push_back(split(axis.size, rank_grid[i + 1] * piece_grid[i],
                              place[i + 1] * piece_grid[i] + piece[i], align_of(axis, stage)));
        } else {
          box.push_back({0, axis.size});
        }
      }
      if (!is_first_along_missing(type, place, piece)) box[0].end = box[0].begin;
      pieces->push_back({box, ranks[next_rank]});
    });
    ++next_rank;
  });
}

/// Along a spatial axis that the value does not have (it was squeezed away), the first part owns
/// it.
bool Placement::is_first_along_missing(const ValueType& type, const std::vector<int64_t>& place,
                                       const std::vector<int64_t>& piece) {
  std::vector<bool> has(piece.size(), false);
  for (const Axis& axis : type.axes)
    if (axis.kind == AxisKind::kSpatial) has[axis.spatial_index] = true;
  for (size_t i = 0; i < piece.size(); ++i)
    if (!has[i] && (place[i + 1] != 0 || piece[i] != 0)) return false;
  return true;
}

void Placement::add_feature_pieces(const ValueType& type, int stage, int64_t micro_batch,
                                   std::vector<Piece>* pieces) const {
  const int64_t ranks_per_replica = plan_.ranks_of_stage(stage);
  const std::vector<int> ranks = plan_.stage_ranks(stage);
  for (size_t i = 0; i < ranks.size(); ++i) {
    const int64_t index = static_cast<int64_t>(i);
    const Range replica = samples(type.batch(), micro_batch, index / ranks_per_replica);
    Box box = Box::whole(type.shape());
    box[0] =
        split(replica.size(), ranks_per_replica, index % ranks_per_replica).shifted(replica.begin);
    pieces->push_back({box, ranks[i]});
  }
}

std::vector<Box> Placement::spatial_cells(const Layout& layout) {
  return CellNumbers(layout).cells;
}

Layout Placement::layout_of_parts(const ValueType& type, const Layout& source) const {
  const CellNumbers cells(source);
  std::vector<Piece> pieces;
  for (const Piece& piece : source.pieces()) {
    Box box = Box::whole(type.shape());
    box[0] = piece.box[0];
    box[2] = {0, 0};
    if (!piece.box.empty()) {
      const int64_t part = cells.number_of.at(begins_of(spatial_part(piece.box)));
      box[2] = {part, part + 1};
    }
    pieces.push_back({box, piece.rank});
  }
  return Layout(type.shape(), std::move(pieces));
}

}  // namespace tessera
