#pragma once
// The numbers of images changed at random: blur, gamma, contrast, brightness, noise and boxes
// without an image, in this order. Every pixel is a function of (seed, sample, epoch, position); a
// blur reads the pixels around a box, those of the border again beyond it.

#include <memory>

#include "tessera/augment/augmentation.h"
#include "tessera/data/dataset.h"

namespace tessera {

/// Targets stay as they are.
std::shared_ptr<const Dataset> with_changed_numbers(std::shared_ptr<const Dataset> source,
                                                    const Augmentation& augmentation,
                                                    uint64_t seed);

}  // namespace tessera
