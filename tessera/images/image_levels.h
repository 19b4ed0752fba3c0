#pragma once
// Files that hold an image at several resolutions: which one is meant.
//
// Example:
//   const int level = choose_level(options, {1, 4, 16}, 0.25, "slide", path);

#include <optional>
#include <string>
#include <vector>

#include "tessera/images/open_array.h"

namespace tessera {

/// The options' level, or the one whose pixels are nearest to the size that they ask for.
/// `downsamples` are how many pixels of the finest level a pixel of each has along a side;
/// `microns` is the size of a pixel of the finest. Throws InvalidInput, with [place] and the path,
/// for a level that is not there and where the file does not say how large its pixels are.
int choose_level(const ArrayOptions& options, const std::vector<double>& downsamples,
                 std::optional<double> microns, const std::string& place, const std::string& path);

}  // namespace tessera
