#include "tessera/job/applied_data.h"

#include <algorithm>
#include <map>
#include <utility>

#include "tessera/augment/own_grid.h"
#include "tessera/data/subset.h"

namespace tessera {

AppliedData AppliedData::as_it_is(const Dataset& data) {
  const std::shared_ptr<const Dataset> shared(&data, [](const Dataset*) {});
  return {shared, shared};
}

AppliedData AppliedData::of(const std::vector<int64_t>& samples) const {
  return {std::make_shared<Subset>(seen, samples), std::make_shared<Subset>(own, samples),
          preparation};
}

bool AppliedData::comes_back(const Graph& graph) const {
  const Shape input = graph.type(graph.inputs()[0]).shape();
  const Shape output = graph.type(graph.outputs()[0]).shape();
  return changes_grid(preparation) && output.size() == input.size() &&
         std::equal(input.begin() + 2, input.end(), output.begin() + 2);
}

std::vector<SizeGroup> groups_by_size(const AppliedData& data) {
  std::vector<SizeGroup> groups;
  std::map<std::pair<Shape, Shape>, size_t> places;
  for (int64_t sample = 0; sample < data.seen->size(); ++sample) {
    const Shape seen = data.seen->image_shape_of(sample), own = data.own->image_shape_of(sample);
    const auto [place, is_new] = places.try_emplace({seen, own}, groups.size());
    if (is_new) groups.push_back({seen, own, {}});
    groups[place->second].samples.push_back(sample);
  }
  return groups;
}

}  // namespace tessera
