#pragma once
// Patches of the images of a data set, all of one size, however large the images are: at random
// with everything that changes positions, or as a grid that covers each image once.
//
// Everything that is drawn is a function of (seed, sample, epoch). A sample of the patches is one
// patch; where the source is smaller than a patch, the image is `fill` there and labels do not
// count.

#include <memory>
#include <string>

#include "tessera/augment/augmentation.h"
#include "tessera/data/dataset.h"

namespace tessera {

/// Where random patches lie.
struct CropCentres {
  enum class Kind {
    kUniform,     // anywhere
    kForeground,  // a share of them around a pixel of a class other than 0
    kClasses,     // a share of them around a pixel of a class that is drawn first
  };
  Kind kind = Kind::kUniform;
  double share = 1;  // of the patches; the others lie anywhere
};

/// "uniform", "foreground" or "classes", the last two with :share=0.5. Throws InvalidInput.
CropCentres parse_crop_centres(const std::string& text);

struct PatchOptions {
  Shape size;  // spatial
  CropCentres centres = {};
  int64_t per_image = 1;  // patches of an image in an epoch
  Augmentation augmentation = {};
  double fill = 0;
  uint64_t seed = 0;
};

/// Throws InvalidInput where the size does not fit the images' axes, and where targets have other
/// sizes than their images: they could not be cut with them.
std::shared_ptr<const Dataset> random_patches(std::shared_ptr<const Dataset> source,
                                              const PatchOptions& options);

/// Patches side by side from the first pixel on: each pixel of each image is in exactly one, and
/// the last ones hang over the border. Targets that are numbers cannot be ignored there: their last
/// patches are moved inside, and some pixels are in two. Of images with one target each, it is the
/// patch in the middle.
std::shared_ptr<const Dataset> patch_grid(std::shared_ptr<const Dataset> source, const Shape& size,
                                          double fill);

}  // namespace tessera
