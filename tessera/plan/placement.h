#pragma once
// From a plan to layouts: which rank owns which box of every value. One rule for all values: an
// axis is cut by its kind. The batch is cut into micro-batches and each of them into `data` parts,
// spatial axes by the grid of the value's stage, channels never; a value without spatial axes (a
// head's features) has its batch cut over all ranks of its stage in a replica.
//
// Pieces are listed micro-batch by micro-batch, as many for each: piece i of a value belongs to
// micro-batch i / (pieces / micro-batches).
//
// Spatial axes are cut on multiples of (coarsest stride of the graph / stride of the value), so
// that levels of a U-Net are cut at the same places and 2x2 pools and up-convolutions exchange
// nothing.

#include <tuple>
#include <vector>

#include "tessera/geometry/layout.h"
#include "tessera/graph/graph.h"
#include "tessera/plan/plan.h"

namespace tessera {

class Placement {
 public:
  Placement(const Graph& graph, const Plan& plan);

  /// The layout of a value of this type that a stage makes; it has no kPart axis. Values of one
  /// type share it. One thread at a time.
  Layout layout_of(const ValueType& type, int stage = 0) const;
  /// The layout of partial results, one entry of the kPart axis for each spatial cell of `source`,
  /// owned where the cell is.
  Layout layout_of_parts(const ValueType& type, const Layout& source) const;
  /// The distinct non-empty spatial boxes of a layout, in list order.
  static std::vector<Box> spatial_cells(const Layout& layout);

 private:
  void add_image_pieces(const ValueType& type, int stage, int64_t micro_batch,
                        std::vector<Piece>* pieces) const;
  void add_feature_pieces(const ValueType& type, int stage, int64_t micro_batch,
                          std::vector<Piece>* pieces) const;
  /// The samples of one replica in a micro-batch.
  Range samples(int64_t batch, int64_t micro_batch, int64_t replica) const;
  int64_t align_of(const Axis& axis, int stage) const;
  bool is_cut_on_grid(const Axis& axis, int stage) const;
  static bool is_first_along_missing(const ValueType& type, const std::vector<int64_t>& place,
                                     const std::vector<int64_t>& piece);

  Layout make_layout(const ValueType& type, int stage) const;

  Plan plan_;
  int num_spatial_ = 0;
  std::vector<std::vector<Ratio>> coarsest_;  // per stage and spatial axis
  mutable std::vector<std::tuple<std::vector<Axis>, int, Layout>> known_;  // by axes and stage
};

}  // namespace tessera
