#pragma once
// Pictures of what a network sees and says: an image, its true classes and the predicted ones side
// by side, with the workers' boxes drawn on top.
//
// Example:
//   Canvas picture = side_by_side({{"image", picture_of(image)},
//                                  {"truth", picture_of_classes(truth)},
//                                  {"prediction", picture_of_classes(predicted)}},
//                                 {.boxes = {{{0, 128}, {0, 128}}, {{0, 128}, {128, 256}}}});
//   write_png("prediction.png", picture.image());

#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "tessera/data/canvas.h"
#include "tessera/geometry/box.h"

namespace tessera {

/// Distinct colours: 0 is black, the next are bright and far from each other on the colour wheel;
/// negative labels (to be ignored) are grey.
Colour class_colour(int64_t label);

/// `image` is height x width or channels x height x width: three channels as RGB, otherwise the
/// first as grey. Stretched so that all but the darkest and the brightest percent keep their
/// differences; NaN is magenta.
Canvas picture_of(const at::Tensor& image);

/// `labels` is height x width, integers.
Canvas picture_of_classes(const at::Tensor& labels);

/// The image, with half of the colour of its class over every pixel whose class is not 0.
Canvas overlay_of(const at::Tensor& image, const at::Tensor& labels);

struct Panel {
  std::string caption;
  Canvas picture;
};

struct PanelOptions {
  std::vector<Box> boxes = {};  // height x width ranges, drawn as frames on each panel
  int64_t zoom = 1;             // pixels per pixel
};

/// At least one panel; below each its caption.
Canvas side_by_side(const std::vector<Panel>& panels, const PanelOptions& options);

}  // namespace tessera
