#pragma once
// The same network on the same placement for images of another size.

#include <vector>

#include "tessera/data/dataset.h"
#include "tessera/job/job.h"

namespace tessera {

/// Samples of one size.
struct SizeGroup {
  Shape image_shape;  // channels x space
  std::vector<int64_t> samples;
};
/// In the order of their first samples.
std::vector<SizeGroup> groups_by_size(const Dataset& data);

/// `own` was resolved from `config`, and is the answer for its own size. For another the batch is
/// as small as the placement allows, since nobody has said that more fits.
Job job_for_size(const JobConfig& config, const Job& own, const Shape& image_shape);

}  // namespace tessera
