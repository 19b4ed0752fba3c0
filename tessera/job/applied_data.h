#pragma once
// Images that a network is applied to, twice: as the network sees them, and in the grid of their
// own files, to which results come back.
//
// Example:
//   const AppliedData data = AppliedData::as_it_is(images);   // both are the same

#include <memory>
#include <vector>

#include "tessera/augment/prepared.h"
#include "tessera/data/dataset.h"
#include "tessera/graph/graph.h"

namespace tessera {

struct AppliedData {
  std::shared_ptr<const Dataset> seen;  // by the network
  std::shared_ptr<const Dataset> own;   // sample by sample the same images, in their files' grid
  Preparation preparation = {};         // laid_out() makes the one of the other by this

  /// `data`, which must outlive this, is seen as it is.
  static AppliedData as_it_is(const Dataset& data);

  /// Some of the samples.
  AppliedData of(const std::vector<int64_t>& samples) const;
  /// Whether outputs of `graph`, a network for seen images, lie in another grid than the files do.
  /// What has another size than the image, or no space, is in a grid of its own and stays there.
  bool comes_back(const Graph& graph) const;
};

/// Samples of one size, in both grids.
struct SizeGroup {
  Shape image_shape;  // channels x space, as it is seen
  Shape own_shape;
  std::vector<int64_t> samples;
};
/// In the order of their first samples.
std::vector<SizeGroup> groups_by_size(const AppliedData& data);

}  // namespace tessera
