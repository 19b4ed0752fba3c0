#pragma once
// The data sets by name, as `--data` takes them:
//
//   synthetic:kind=segmentation,samples=64,classes=3,noise=0.3   (synthetic.h; all have defaults)
//   npy:images.npy,targets.npy,classes=4                         (npy_dataset.h)
//   npy:images.npy                                               to predict

#include <memory>
#include <string>

#include "tessera/data/dataset.h"
#include "tessera/data/npy_dataset.h"

namespace tessera {

/// Whether files must hold images of one size, or of any.
enum class ImageSizes { kAsGiven, kAny };

/// `image_shape` is channels x spatial, from the model's input; `num_classes` is the model's, for
/// files that do not say how many labels are legal; `channels` is where files have theirs. Throws
/// InvalidInput for an unknown name (naming the known ones) and whatever the data set refuses.
std::unique_ptr<Dataset> open_dataset(const std::string& spec, const Shape& image_shape,
                                      uint64_t seed, int64_t num_classes = 0,
                                      ChannelAxis channels = ChannelAxis::kFirst,
                                      ImageSizes sizes = ImageSizes::kAsGiven);

}  // namespace tessera
