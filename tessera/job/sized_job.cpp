#include "tessera/job/sized_job.h"

#include <map>

#include "tessera/base/error.h"

namespace tessera {

std::vector<SizeGroup> groups_by_size(const Dataset& data) {
  std::vector<SizeGroup> groups;
  std::map<Shape, size_t> places;
  for (int64_t sample = 0; sample < data.size(); ++sample) {
    const Shape shape = data.image_shape_of(sample);
    const auto [place, is_new] = places.try_emplace(shape, groups.size());
    if (is_new) groups.push_back({shape, {}});
    groups[place->second].samples.push_back(sample);
  }
  return groups;
}

Job job_for_size(const JobConfig& config, const Job& own, const Shape& image_shape) {
  Shape input = own.graph().type(own.graph().inputs()[0]).shape();
  if (Shape(input.begin() + 1, input.end()) == image_shape) return own;
  if (input.size() != image_shape.size() + 1 || input[1] != image_shape[0])
    throw_error<InvalidInput>(
        "[data] an image is {}, the network takes {} channels x {} spatial axes; give other images",
        to_string(image_shape), input[1], input.size() - 2);
  input = image_shape;
  input.insert(input.begin(), own.plan.data * own.plan.micro_batches);
  JobConfig sized = config;
  sized.input = to_string(input);
  sized.batch = 0;
  return resolve_job(sized, own.real);
}

}  // namespace tessera
