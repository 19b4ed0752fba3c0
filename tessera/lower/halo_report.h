#pragma once
// What a placement exchanges, for people: per value, how wide the halos are and how much crosses.

#include <string>
#include <utility>
#include <vector>

#include "tessera/geometry/layout.h"
#include "tessera/graph/graph.h"
#include "tessera/plan/plan.h"

namespace tessera {

struct HaloInfo {
  std::string value;
  std::vector<std::pair<int64_t, int64_t>> widths;  // per spatial axis: widest before, after a part
  int64_t elements = 0;                             // that cross ranks in a forward pass
};

/// Values whose boxes cross ranks, in graph order.
std::vector<HaloInfo> halo_report(const Graph& graph, const Plan& plan);

/// The layout of the graph's image on the first stage.
Layout input_layout(const Graph& graph, const Plan& plan);

}  // namespace tessera
