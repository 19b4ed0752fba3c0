#pragma once
// Volumes laid down alike: axes that run to the right, to the front and up, and pixels of one size
// in the world. Sizes and frames change with them; any box is read alone, and has the bits of the
// same region of the whole.
//
// Example:
//   auto laid_out = respaced(oriented(scans), {1, 1, 1});   // millimetres

#include <memory>
#include <string>
#include <vector>

#include "tessera/augment/axis_map.h"
#include "tessera/data/dataset.h"

namespace tessera {

/// The order and directions of a sample's axes that bring them nearest to right, anterior, superior
/// (x, y, z), by the affine of its frame. Numbers are copied.
AxisMap canonical_axes(const ImageFrame& frame, const Shape& spatial);
/// The frame of what canonical_axes() gives.
ImageFrame turned_frame(const ImageFrame& frame, const AxisMap& axes);

/// Throws InvalidInput for a sample that is not a volume, or whose file does not say where it lies.
std::shared_ptr<const Dataset> oriented(std::shared_ptr<const Dataset> source);

/// `spacing` is millimetres along each axis of space, in the order of the images' axes. Numbers by
/// linear interpolation, labels by the nearest pixel; images keep their outer edges, to half a new
/// pixel. Throws InvalidInput for a sample whose file does not say its spacing.
std::shared_ptr<const Dataset> respaced(std::shared_ptr<const Dataset> source,
                                        const std::vector<double>& spacing);

/// Old pixels per new one along each axis, of an image with this frame.
std::vector<double> old_per_new_pixel(const ImageFrame& frame, const std::vector<double>& spacing);

/// "1x1x2.5". Throws InvalidInput.
std::vector<double> parse_spacing(const std::string& text);

}  // namespace tessera
