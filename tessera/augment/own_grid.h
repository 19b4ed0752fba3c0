#pragma once
// The way back from images that were laid down alike: where the pixels of an image, in the grid of
// its own file, lie in what laid_out() has made of it. Axes change places, turn round and are
// stretched, each for itself, so that a box of the one grid lies in a box of the other.
//
// Example:
//   interpolate(reader, map_from_own_grid(files, sample, preparation), box, {}, target);

#include "tessera/augment/interpolation.h"
#include "tessera/augment/prepared.h"

namespace tessera {

/// Whether laid_out() gives images another grid than their files have.
bool changes_grid(const Preparation& preparation);

/// How one axis of the image's own grid lies in that of laid_out().
struct OwnAxis {
  int laid_out = 0;        // the axis there that runs along this one
  bool is_turned = false;  // and the other way round
  int64_t size = 0;        // of this axis
  double ratio = 1;        // its pixels per pixel of laid_out()
};

/// Of all spatial axes of a sample of the data set that laid_out() was given.
std::vector<OwnAxis> own_axes(const Dataset& own, int64_t sample, const Preparation& preparation);

/// From a box of the image's own space to positions in that of laid_out(). Where both have the same
/// pixels the positions are whole numbers, and interpolation copies.
PatchMap map_from_own_grid(const std::vector<OwnAxis>& axes);

}  // namespace tessera
