#pragma once
// Statistics of whole images, which nobody holds: read in strips, with additions in an order that
// depends on the image's size alone. Numbers that are not finite do not count.
//
// Example:
//   std::vector<ImageMoments> of_channels = image_moments(data, sample);
//   ImageMoments all; for (...) all.add(of_channels[0]);

#include <cstdint>
#include <utility>
#include <vector>

#include "tessera/data/dataset.h"

namespace tessera {

/// Count, mean and squared distances from it, which combine without loss (Chan, Golub, LeVeque
/// 1983).
struct ImageMoments {
  int64_t count = 0;
  double mean = 0;
  double squares = 0;
  double low = 0, high = 0;

  void add(const ImageMoments& other);
  /// Over all numbers, as one population; 0 for none.
  double deviation() const;
};

/// Of each channel.
std::vector<ImageMoments> image_moments(const Dataset& data, int64_t sample);
/// Of each channel over all samples, added in their order; several are read at a time.
std::vector<ImageMoments> all_moments(const Dataset& data);

/// Of each channel: how many of its numbers lie in each of `bins` equal parts of its range, from
/// low to high; the last part has both its ends.
std::vector<std::vector<int64_t>> histograms(const Dataset& data, int64_t sample,
                                             const std::vector<std::pair<double, double>>& ranges,
                                             int64_t bins);

/// The numbers below which so many percent of each channel lie, to 1/65536 of the channel's range.
std::vector<std::pair<double, double>> image_percentiles(const Dataset& data, int64_t sample,
                                                         double low_percent, double high_percent);

}  // namespace tessera
