#include "tessera/augment/prepared.h"

#include <algorithm>

#include "tessera/augment/changed_numbers.h"
#include "tessera/augment/layout_changes.h"
#include "tessera/base/error.h"

namespace tessera {
namespace {

Shape spatial_sizes(const Dataset& data) {
  const Shape shape = data.image_shape();
  return shape.empty() ? Shape() : Shape(shape.begin() + 1, shape.end());
}

/// Whether images are larger than what the network takes, or differ. Smaller ones of one size are
/// more likely a mistake.
bool must_be_cut(const Shape& spatial, const Shape& network) {
  if (network.empty() || spatial == network) return false;
  if (spatial.empty()) return true;
  return std::equal(spatial.begin(), spatial.end(), network.begin(), network.end(),
                    [](int64_t held, int64_t wanted) { return held >= wanted; });
}

/// What the patches measure; empty where the images are taken whole.
Shape patch_size(const Dataset& images, const Preparation& preparation) {
  const Shape spatial = spatial_sizes(images);
  if (!preparation.crop.empty()) {
    if (!preparation.network.empty() && preparation.crop != preparation.network)
      throw_error<InvalidInput>(
          "[--crop] {} is not what the network takes, {}; give --input this size, or leave --crop "
          "out",
          to_string(preparation.crop), to_string(preparation.network));
    return preparation.crop;
  }
  if (must_be_cut(spatial, preparation.network)) return preparation.network;
  const bool changes =
      preparation.augmentation.changes_positions() || preparation.patches_per_image > 1;
  if (!changes) return {};
  if (spatial.empty())
    throw_error<InvalidInput>("[--crop] the images have different sizes; give the patches one");
  return spatial;
}

std::shared_ptr<const Dataset> training_patches(std::shared_ptr<const Dataset> images,
                                                const Shape& size, const Preparation& preparation) {
  std::shared_ptr<const Dataset> made = std::move(images);
  if (!size.empty())
    made = random_patches(made, {.size = size,
                                 .centres = preparation.centres,
                                 .per_image = preparation.patches_per_image,
                                 .augmentation = preparation.augmentation,
                                 .fill = preparation.fill,
                                 .seed = preparation.seed});
  if (preparation.augmentation.changes_numbers())
    made = with_changed_numbers(made, preparation.augmentation, preparation.seed);
  return made;
}

}  // namespace

std::shared_ptr<const Dataset> laid_out(std::shared_ptr<const Dataset> source,
                                        const Intensities& intensities,
                                        const Preparation& preparation) {
  std::shared_ptr<const Dataset> made = normalised(std::move(source), intensities);
  if (preparation.to_ras) made = oriented(made);
  if (!preparation.spacing.empty()) made = respaced(made, preparation.spacing);
  return made;
}

PreparedData prepared(std::shared_ptr<const Dataset> train,
                      std::shared_ptr<const Dataset> validation, const Preparation& preparation) {
  PreparedData data;
  data.intensities = fitted(preparation.normalise, *train);
  const auto images = laid_out(std::move(train), data.intensities, preparation);
  const Shape size = patch_size(*images, preparation);
  data.train = training_patches(images, size, preparation);
  if (validation) {
    const auto held_out = laid_out(std::move(validation), data.intensities, preparation);
    const Shape wanted = size.empty() ? spatial_sizes(*images) : size;
    // Without a network, images of different sizes stay as they are.
    const bool whole = wanted.empty() || spatial_sizes(*held_out) == wanted;
    data.validation = whole ? held_out : patch_grid(held_out, wanted, preparation.fill);
  }
  return data;
}

}  // namespace tessera
