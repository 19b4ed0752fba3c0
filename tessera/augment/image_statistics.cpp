#include "tessera/augment/image_statistics.h"

#include <algorithm>
#include <cmath>

namespace tessera {
namespace {

constexpr int64_t kNumbersAtOnce = 1 << 20;  // of one strip, at least a row
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

void for_each_strip(const Dataset& data, int64_t sample, int64_t channel,
                    const std::function<void(const double* values, int64_t count)>& visit) {
  Box box = Box::whole(data.image_shape_of(sample));
  box[0] = {channel, channel + 1};
  const int64_t height = box[1].size(), row = box.volume() / height;
  const int64_t rows = std::clamp<int64_t>(kNumbersAtOnce / row, 1, height);
  for (int64_t begin = 0; begin < height; begin += rows) {
    box[1] = {begin, std::min(begin + rows, height)};
    at::Tensor values = at::empty(box.shape(), at::kDouble);
    data.load_image(sample, box, values);
    visit(values.data_ptr<double>(), values.numel());
  }
}

std::vector<ImageMoments> image_moments(const Dataset& data, int64_t sample) {
  std::vector<ImageMoments> found(data.image_shape_of(sample).at(0));
  for (int64_t channel = 0; channel < std::ssize(found); ++channel)
    for_each_strip(data, sample, channel, [&](const double* values, int64_t count) {
      found[channel].add(moments_of(values, count));
    });
  return found;
}

std::vector<ImageMoments> all_moments(const Dataset& data) {
  std::vector<ImageMoments> all;
  for (int64_t sample = 0; sample < data.size(); ++sample) {
    const std::vector<ImageMoments> found = image_moments(data, sample);
    all.resize(std::max(all.size(), found.size()));
    for (size_t channel = 0; channel < found.size(); ++channel) all[channel].add(found[channel]);
  }
  return all;
}

std::vector<int64_t> histogram(const Dataset& data, int64_t sample, int64_t channel, double low,
                               double high, int64_t bins) {
  std::vector<int64_t> counts(bins, 0);
  const double per_number = high > low ? static_cast<double>(bins) / (high - low) : 0;
  for_each_strip(data, sample, channel, [&](const double* values, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      if (values[i] >= low && values[i] <= high)
        ++counts[std::min(static_cast<int64_t>((values[i] - low) * per_number), bins - 1)];
  });
  return counts;
}

std::vector<std::pair<double, double>> image_percentiles(const Dataset& data, int64_t sample,
                                                         double low_percent, double high_percent) {
  const std::vector<ImageMoments> ranges = image_moments(data, sample);
  std::vector<std::pair<double, double>> found;
  for (int64_t channel = 0; channel < std::ssize(ranges); ++channel) {
    const ImageMoments& range = ranges[channel];
    if (range.count == 0) {
      found.emplace_back(0, 0);
      continue;
    }
    const std::vector<int64_t> counts =
        histogram(data, sample, channel, range.low, range.high, kPercentileBins);
    found.emplace_back(percentile(counts, range, low_percent),
                       percentile(counts, range, high_percent));
  }
  return found;
}

}  // namespace tessera
