#include "tessera/lower/halo_report.h"

#include <algorithm>

#include "tessera/lower/edges.h"
#include "tessera/lower/multigrid.h"
#include "tessera/lower/rewrite.h"
#include "tessera/plan/placement.h"

namespace tessera {
namespace {

/// Widens the halos by one group's needs, inside the image.
void widen(const ValuePlan& value, const EdgeGroup& group, int first_spatial, HaloInfo* info) {
  const Box image = Box::whole(value.layout.global_shape());
  for (size_t q = 0; q < group.needs.size(); ++q) {
    if (!group.covers_piece[q]) continue;
    const Box need = intersect(group.needs[q].box, image);
    const Box& piece = value.layout.piece(static_cast<int>(q)).box;
    for (size_t i = 0; i < info->widths.size(); ++i) {
      const int axis = first_spatial + static_cast<int>(i);
      info->widths[i].first = std::max(info->widths[i].first, piece[axis].begin - need[axis].begin);
      info->widths[i].second = std::max(info->widths[i].second, need[axis].end - piece[axis].end);
    }
  }
}

}  // namespace

std::vector<HaloInfo> halo_report(const Graph& graph, const Plan& plan) {
  const PlacedGraph placed = place(rewrite(graph, without_multigrid(plan)), plan);
  std::vector<HaloInfo> report;
  for (size_t id = 0; id < placed.values.size(); ++id) {
    const Value& value = placed.graph.values()[id];
    HaloInfo info{value.name, {}, 0};
    info.widths.resize(value.type.num_spatial());
    for (const EdgeGroup& group : placed.values[id].groups)
      widen(placed.values[id], group, value.type.first_spatial(), &info);
    info.elements = exchanged_elements(placed.values[id]);
    if (info.elements > 0) report.push_back(std::move(info));
  }
  return report;
}

Layout input_layout(const Graph& graph, const Plan& plan) {
  Plan whole_batch = plan;  // the grid is that of every micro-batch
  whole_batch.micro_batches = 1;
  return Placement(graph, whole_batch).layout_of(graph.type(graph.inputs()[0]));
}

}  // namespace tessera
