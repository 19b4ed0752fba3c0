#include "tessera/data/open.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/base/suggestion.h"
#include "tessera/data/npy_dataset.h"
#include "tessera/data/synthetic.h"

namespace tessera {

std::unique_ptr<Dataset> open_dataset(const std::string& spec, const Shape& image_shape,
                                      uint64_t seed, int64_t num_classes, ChannelAxis channels,
                                      ImageSizes sizes) {
  const size_t colon = std::min(spec.find(':'), spec.size());
  const std::string name = spec.substr(0, colon);
  const std::string rest = colon < spec.size() ? spec.substr(colon + 1) : "";
  Shape in_files = image_shape;
  if (sizes == ImageSizes::kAny && !in_files.empty())
    std::fill(in_files.begin() + 1, in_files.end(), 0);
  if (name == "npy") return open_npy_dataset(rest, in_files, num_classes, channels);
  if (channels == ChannelAxis::kLast)
    throw_error<InvalidInput>("[--channels-last] is for files, not for '{}'; leave it out", spec);
  if (name == "synthetic") return make_synthetic(parse_synthetic(rest), image_shape, seed);
  throw_error<InvalidInput>(
      "[data] '{}' is not a known data set{}; write synthetic:key=value,... or "
      "npy:images.npy,targets.npy",
      spec, did_you_mean(name, {"synthetic", "npy"}));
}

}  // namespace tessera
