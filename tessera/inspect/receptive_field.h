#pragma once
// Receptive fields: which part of the image can change the pixel in the middle of a value. They are
// found by composing Op::needed() backwards, from one pixel with all its channels in one sample, so
// that strides, dilations, crops and branches count with their exact phase and clipping. Where
// branches meet again their boxes are merged to the smallest box around both (which is larger than
// what is seen only where a branch reads nothing but padding).
//
// Statistics of a normalisation over the image are not counted: by convention the field says what a
// pixel sees of its neighbourhood.
//
// Example:
//   receptive_fields(graph)[value].axes[0].pixels();

#include <cstdint>
#include <vector>

#include "tessera/geometry/box.h"
#include "tessera/graph/graph.h"

namespace tessera {

/// Along one spatial axis of the image.
struct FieldAxis {
  Range range;  // inside the image
  int64_t image_size = 0;

  int64_t pixels() const { return range.size(); }
  bool whole() const { return range == Range{0, image_size}; }
  /// It touches an end of the image, which may have cut it off: a larger image could show more.
  bool at_border() const { return range.begin == 0 || range.end == image_size; }
  bool operator==(const FieldAxis&) const = default;
};

struct ReceptiveField {
  ValueId image = -1;  // the graph's input that `axes` belong to: the first that the value sees
  std::vector<FieldAxis> axes;  // empty: it sees none
  bool operator==(const ReceptiveField&) const = default;
};

/// The box of the pixel in the middle: one sample, all channels, one pixel of the spatial axes.
Box middle_pixel(const ValueType& type);

/// The receptive field of every value, by ValueId. Inputs of labels are not images.
std::vector<ReceptiveField> receptive_fields(const Graph& graph);

}  // namespace tessera
