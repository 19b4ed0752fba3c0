#pragma once
// All that lies between the images of a data set and what a network is trained on, in one order:
// numbers to one range, volumes laid down alike, patches, and random changes of the training
// patches. Validation sees a grid of patches without random changes.
//
// Example:
//   const PreparedData data = prepared(split.train, split.validation, options);

#include <memory>
#include <string>

#include "tessera/augment/augmentation.h"
#include "tessera/augment/intensities.h"
#include "tessera/augment/patches.h"
#include "tessera/data/dataset.h"

namespace tessera {

struct Preparation {
  Normalisation normalise = {};
  bool to_ras = false;
  std::vector<double> spacing = {};  // millimetres; empty: as they are
  Shape crop = {};                   // spatial; empty: `network` where that is not the images' size
  CropCentres centres = {};
  double fill = 0;  // of patches, beyond the image
  int64_t patches_per_image = 1;
  Augmentation augmentation = {};
  Shape network = {};  // spatial sizes that the network takes; empty: any
  uint64_t seed = 0;
};

struct PreparedData {
  std::shared_ptr<const Dataset> train;
  std::shared_ptr<const Dataset> validation;  // null: none
  Intensities intensities;
};

/// Throws InvalidInput where data and options do not fit each other.
PreparedData prepared(std::shared_ptr<const Dataset> train,
                      std::shared_ptr<const Dataset> validation, const Preparation& preparation);

/// The part that does not cut: what a prediction on whole images sees, with the run's intensities.
std::shared_ptr<const Dataset> laid_out(std::shared_ptr<const Dataset> source,
                                        const Intensities& intensities,
                                        const Preparation& preparation);

}  // namespace tessera
