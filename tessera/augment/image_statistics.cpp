#include "tessera/augment/image_statistics.h"

#include <algorithm>
#include <cmath>

#include "tessera/data/in_parallel.h"

namespace tessera {
namespace {

constexpr int64_t kNumbersAtOnce = 1 << 20;  // of a strip of all channels, at least a row of each
constexpr int64_t kPercentileBins = 1 << 16;

ImageMoments moments_of(const double* values, int64_t count) {
  ImageMoments found;
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(values[i])) continue;
    found.low = found.count == 0 ? values[i] : std::min(found.low, values[i]);
    found.high = found.count == 0 ? values[i] : std::max(found.high, values[i]);
    sum += values[i];
    ++found.count;
  }
  if (found.count == 0) return found;
  found.mean = sum / static_cast<double>(found.count);
  for (int64_t i = 0; i < count; ++i)
    if (std::isfinite(values[i]))
      found.squares += (values[i] - found.mean) * (values[i] - found.mean);
  return found;
}

/// Calls visit(channel, values, count) for all channels of a strip of rows, then for those of the
/// next: many formats hold them together, and an image is decoded once for all.
void for_each_part(const Dataset& data, int64_t sample, const auto& visit) {
  Box box = Box::whole(data.image_shape_of(sample));
  const int64_t height = box[1].size(), row = box.volume() / height;
  const int64_t rows = std::clamp<int64_t>(kNumbersAtOnce / row, 1, height);
  for (int64_t begin = 0; begin < height; begin += rows) {
    box[1] = {begin, std::min(begin + rows, height)};
    const at::Tensor values = at::empty(box.shape(), at::kDouble);
    data.load_image(sample, box, values);
    const int64_t count = values.numel() / box[0].size();
    for (int64_t channel = 0; channel < box[0].size(); ++channel)
      visit(channel, values.data_ptr<double>() + channel * count, count);
  }
}

/// The lower end of the bin that holds the number of this rank.
double percentile(const std::vector<int64_t>& counts, const ImageMoments& range, double percent) {
  const auto rank = static_cast<int64_t>(percent / 100 * static_cast<double>(range.count - 1));
  int64_t below = 0;
  size_t bin = 0;
  while (bin + 1 < counts.size() && below + counts[bin] <= rank) below += counts[bin++];
  return range.low +
         (range.high - range.low) * static_cast<double>(bin) / static_cast<double>(counts.size());
}

}  // namespace

void ImageMoments::add(const ImageMoments& other) {
  if (other.count == 0) return;
  if (count == 0) {
    *this = other;
    return;
  }
  const auto own = static_cast<double>(count), others = static_cast<double>(other.count);
  const double distance = other.mean - mean, all = own + others;
  mean += distance * others / all;
  squares += other.squares + distance * distance * own * others / all;
  count += other.count;
  low = std::min(low, other.low);
  high = std::max(high, other.high);
}

double ImageMoments::deviation() const {
  return count == 0 ? 0 : std::sqrt(squares / static_cast<double>(count));
}

std::vector<ImageMoments> image_moments(const Dataset& data, int64_t sample) {
  std::vector<ImageMoments> found(data.image_shape_of(sample).at(0));
  for_each_part(data, sample, [&](int64_t channel, const double* values, int64_t count) {
    found[channel].add(moments_of(values, count));
  });
  return found;
}

std::vector<ImageMoments> all_moments(const Dataset& data) {
  std::vector<std::vector<ImageMoments>> found(static_cast<size_t>(data.size()));
  in_parallel(data.size(), reading_threads(),
              [&](int64_t sample, int64_t) { found[sample] = image_moments(data, sample); });
  std::vector<ImageMoments> all;
  for (const std::vector<ImageMoments>& of_sample : found) {
    all.resize(std::max(all.size(), of_sample.size()));
    for (size_t channel = 0; channel < of_sample.size(); ++channel)
      all[channel].add(of_sample[channel]);
  }
  return all;
}

std::vector<std::vector<int64_t>> histograms(const Dataset& data, int64_t sample,
                                             const std::vector<std::pair<double, double>>& ranges,
                                             int64_t bins) {
  std::vector<std::vector<int64_t>> counts(ranges.size(), std::vector<int64_t>(bins, 0));
  for_each_part(data, sample, [&](int64_t channel, const double* values, int64_t count) {
    const auto [low, high] = ranges.at(static_cast<size_t>(channel));
    const double per_number = high > low ? static_cast<double>(bins) / (high - low) : 0;
    for (int64_t i = 0; i < count; ++i)
      if (values[i] >= low && values[i] <= high)
        ++counts[channel][std::min(static_cast<int64_t>((values[i] - low) * per_number), bins - 1)];
  });
  return counts;
}

std::vector<std::pair<double, double>> image_percentiles(const Dataset& data, int64_t sample,
                                                         double low_percent, double high_percent) {
  const std::vector<ImageMoments> moments = image_moments(data, sample);
  std::vector<std::pair<double, double>> ranges, found;
  for (const ImageMoments& channel : moments) ranges.emplace_back(channel.low, channel.high);
  const auto counts = histograms(data, sample, ranges, kPercentileBins);
  for (size_t channel = 0; channel < moments.size(); ++channel) {
    const ImageMoments& range = moments[channel];
    if (range.count == 0)
      found.emplace_back(0, 0);
    else
      found.emplace_back(percentile(counts[channel], range, low_percent),
                         percentile(counts[channel], range, high_percent));
  }
  return found;
}

}  // namespace tessera
