#include "tessera/images/image_levels.h"

#include <cmath>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {

int choose_level(const ArrayOptions& options, const std::vector<double>& downsamples,
                 std::optional<double> microns, const std::string& place, const std::string& path) {
  const int num_levels = static_cast<int>(downsamples.size());
  if (!options.microns_per_pixel) {
    if (options.level < 0 || options.level >= num_levels)
      throw_error<InvalidInput>("[{}] {}: level {} of {}; legal: 0 to {}", place, path,
                                options.level, counted(num_levels, "level"), num_levels - 1);
    return options.level;
  }
  if (!(*options.microns_per_pixel > 0))
    throw_error<InvalidInput>("[{}] {}: {} microns per pixel; use a number above 0", place, path,
                              *options.microns_per_pixel);
  if (!microns)
    throw_error<InvalidInput>(
        "[{}] {}: the file does not say how large its pixels are; choose a level, 0 to {}", place,
        path, num_levels - 1);
  const auto distance = [&](int level) {
    return std::abs(std::log(downsamples[level] * *microns / *options.microns_per_pixel));
  };
  int nearest = 0;
  for (int level = 1; level < num_levels; ++level)
    if (distance(level) < distance(nearest)) nearest = level;
  return nearest;
}

}  // namespace tessera
