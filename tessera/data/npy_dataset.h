#pragma once
// Images and targets in two .npy files; each rank reads its own boxes.
//
//   images   samples x channels x spatial, or samples x spatial for one channel; with channels last
//            samples x spatial x channels
//   targets  samples x spatial (a label per pixel), or samples (one per image); integers
//            or numbers to be met (regression): samples x channels x spatial; float32 or float64
//            none: images to be predicted
//
// Labels are checked as they are read: one outside [0, classes) that is not the one to ignore is
// InvalidInput with the file, the sample and the position.
//
// Example:
//   auto data = open_npy_dataset("images.npy,targets.npy,classes=4,ignore=255", {3, 512, 512}, 4);

#include <memory>
#include <string>

#include "tessera/data/dataset.h"

namespace tessera {

/// Where an array has its channels: before space, as PyTorch, or after it.
enum class ChannelAxis { kFirst, kLast };

/// `text` is "IMAGES,TARGETS", or "IMAGES" alone, with options after it: classes=K, and
/// ignore=LABEL for pixels that must not count. The number of classes is that option, or else
/// `num_classes`, or else (where that is 0) one more than the largest label, for which the whole
/// target file is read. `image_shape` (channels x spatial) is what the files must hold, where a
/// size of 0 is any; empty: whatever they hold. Channels that are last in the files, of images and
/// of targets that are numbers, are first in the data set.
std::unique_ptr<Dataset> open_npy_dataset(const std::string& text, const Shape& image_shape,
                                          int64_t num_classes,
                                          ChannelAxis channels = ChannelAxis::kFirst);

}  // namespace tessera
