#pragma once
// A patch whose pixels lie anywhere in its source: numbers by linear interpolation, labels by the
// nearest pixel. Each pixel is a function of its own position alone, with additions in a fixed
// order, so that any box has the bits of the same region of the whole patch. What is read of the
// source is the hull of what the box needs.
//
// Example:
//   interpolate(reader, map, box, {.outside = Outside::kFill}, target);

#include <array>
#include <functional>
#include <vector>

#include "tessera/augment/image_reader.h"
#include "tessera/data/box_rows.h"

namespace tessera {

/// For the pixels of a row of the patch: where they lie in the source, along each of its axes, in
/// pixels; the centre of the first pixel is 0.
using Coordinates = std::array<std::vector<double>, 3>;
/// Writes `length` coordinates along each axis, from `position` on along the last axis.
using RowMap = std::function<void(const Position& position, int64_t length, Coordinates*)>;
/// The map of a box, which may hold what it draws for the box.
using PatchMap = std::function<RowMap(const Box& spatial)>;

enum class Outside {
  kFill,     // the fill; labels are kIgnoreLabel
  kNearest,  // what lies at the border
};

struct InterpolationOptions {
  Outside outside = Outside::kFill;
  double fill = 0;
};

/// Writes a box of the patch into `target`, a view of the box's shape and of a real type.
void interpolate(const ImageReader& reader, const PatchMap& map, const Box& box,
                 const InterpolationOptions& options, at::Tensor target);

/// The same for labels.
void nearest(const ImageReader& reader, const PatchMap& map, const Box& box, Outside outside,
             at::Tensor target);

}  // namespace tessera
