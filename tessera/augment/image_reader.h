#pragma once
// One array of one sample (its image or its target) as something that boxes are read from: what the
// readers of this room need, whichever of the two it is.

#include <algorithm>
#include <functional>

#include "tessera/data/dataset.h"

namespace tessera {

/// Whether the target of a sample has pixels, as its image has; else there is one for the whole of
/// it, or none. Numbers for the whole image may have axes of space without any size along them.
inline bool targets_have_pixels(const Dataset& data, int64_t sample) {
  const Shape image = data.image_shape_of(sample), target = data.target_shape_of(sample);
  if (!data.real_targets()) return data.per_pixel() && target.size() + 1 == image.size();
  return target.size() == image.size() &&
         std::any_of(target.begin() + 1, target.end(), [](int64_t size) { return size > 1; });
}

struct ImageReader {
  Shape spatial;
  bool has_channels = true;  // before space
  std::function<void(const Box& box, at::Tensor target)> read;
};

/// The data set must outlive it.
inline ImageReader image_reader(const Dataset& data, Sample sample) {
  const Shape shape = data.image_shape_of(sample);
  return {Shape(shape.begin() + 1, shape.end()), true,
          [&data, sample](const Box& box, at::Tensor to) { data.load_image(sample, box, to); }};
}
inline ImageReader target_reader(const Dataset& data, Sample sample) {
  const Shape shape = data.target_shape_of(sample);
  const bool has_channels = data.real_targets();
  return {Shape(shape.begin() + has_channels, shape.end()), has_channels,
          [&data, sample](const Box& box, at::Tensor to) { data.load_target(sample, box, to); }};
}

/// The spatial ranges of a box.
inline Box spatial_box(const ImageReader& reader, const Box& box) {
  return reader.has_channels ? without_axis(box, 0) : box;
}
/// The box of the reader's array with these spatial ranges, and the channels of `like`.
inline Box reader_box(const ImageReader& reader, const Box& like, const Box& spatial) {
  if (!reader.has_channels) return spatial;
  Box box{like[0]};
  for (int axis = 0; axis < spatial.num_axes(); ++axis) box.push_back(spatial[axis]);
  return box;
}

}  // namespace tessera
