#include "tessera/train/surface_scores.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tessera/base/error.h"
#include "tessera/train/distance_transform.h"

namespace tessera {
namespace {

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kNoClass = -1;

/// The pixels of a class that touch another one, or the end of the image.
std::vector<uint8_t> surface_of(const at::Tensor& classes, int64_t which) {
  const int64_t* const labels = classes.data_ptr<int64_t>();
  std::vector<uint8_t> surface(classes.numel(), 0);
  for (int64_t pixel = 0; pixel < classes.numel(); ++pixel) {
    if (labels[pixel] != which) continue;
    for (int64_t axis = 0; axis < classes.dim() && surface[pixel] == 0; ++axis) {
      const int64_t stride = classes.stride(axis), at = pixel / stride % classes.size(axis);
      surface[pixel] = at == 0 || at + 1 == classes.size(axis) || labels[pixel - stride] != which ||
                       labels[pixel + stride] != which;
    }
  }
  return surface;
}

std::vector<double> distances_between(const std::vector<uint8_t>& from,
                                      const std::vector<uint8_t>& to, const Shape& shape,
                                      const std::vector<double>& spacing) {
  const std::vector<double> squares = squared_distances(to, shape, spacing);
  std::vector<double> distances;
  for (size_t pixel = 0; pixel < from.size(); ++pixel)
    if (from[pixel] != 0) distances.push_back(std::sqrt(squares[pixel]));
  return distances;
}

bool has_any(const std::vector<uint8_t>& surface) {
  return std::ranges::any_of(surface, [](uint8_t pixel) { return pixel != 0; });
}

SurfaceScores compare(const std::vector<uint8_t>& prediction, const std::vector<uint8_t>& truth,
                      const Shape& shape, const std::vector<double>& spacing, double tolerance) {
  const bool predicted = has_any(prediction), there = has_any(truth);
  if (!predicted && !there) return {kNotANumber, kNotANumber};
  if (!predicted || !there) return {kNotANumber, 0};
  const std::vector<double> there_and_back[] = {
      distances_between(prediction, truth, shape, spacing),
      distances_between(truth, prediction, shape, spacing)};
  SurfaceScores scores{0, 0};
  double near = 0, all = 0;
  for (const std::vector<double>& distances : there_and_back) {
    near += static_cast<double>(
        std::ranges::count_if(distances, [&](double each) { return each <= tolerance; }));
    all += static_cast<double>(distances.size());
    scores.hausdorff95 = std::max(scores.hausdorff95, percentile(distances, 95));
  }
  scores.surface_dice = near / all;
  return scores;
}

}  // namespace

double percentile(std::vector<double> numbers, double percent) {
  TESSERA_CHECK(!numbers.empty(), "a percentile of nothing");
  const double place = percent / 100 * static_cast<double>(numbers.size() - 1);
  const auto below = static_cast<size_t>(place);
  std::ranges::nth_element(numbers, numbers.begin() + static_cast<int64_t>(below));
  const double low = numbers[below];
  if (below + 1 == numbers.size()) return low;
  const double high =
      *std::min_element(numbers.begin() + static_cast<int64_t>(below) + 1, numbers.end());
  return low + (place - static_cast<double>(below)) * (high - low);
}

std::vector<SurfaceScores> surface_scores(const at::Tensor& prediction, const at::Tensor& truth,
                                          const SurfaceOptions& options) {
  const Shape shape = truth.sizes().vec();
  std::vector<double> spacing = options.spacing;
  if (spacing.empty()) spacing.assign(shape.size(), 1.0);
  const at::Tensor ignored = truth.eq(options.ignored);
  const at::Tensor predicted = prediction.masked_fill(ignored, kNoClass).contiguous();
  const at::Tensor there = truth.masked_fill(ignored, kNoClass).contiguous();
  std::vector<SurfaceScores> scores;
  for (int64_t k = 0; k < options.num_classes; ++k)
    scores.push_back(
        compare(surface_of(predicted, k), surface_of(there, k), shape, spacing, options.tolerance));
  return scores;
}

void MeanSurfaceScores::add(const std::vector<SurfaceScores>& of_sample) {
  sums_.resize(of_sample.size());
  const auto add_number = [](double number, double* sum, int64_t* count) {
    if (std::isnan(number)) return;
    *sum += number;
    ++*count;
  };
  for (size_t k = 0; k < of_sample.size(); ++k) {
    Sum& sum = sums_[k];
    add_number(of_sample[k].hausdorff95, &sum.hausdorff95, &sum.num_hausdorff95);
    add_number(of_sample[k].surface_dice, &sum.surface_dice, &sum.num_surface_dice);
  }
}

void MeanSurfaceScores::add(const MeanSurfaceScores& other) {
  sums_.resize(std::max(sums_.size(), other.sums_.size()));
  for (size_t k = 0; k < other.sums_.size(); ++k) {
    sums_[k].hausdorff95 += other.sums_[k].hausdorff95;
    sums_[k].surface_dice += other.sums_[k].surface_dice;
    sums_[k].num_hausdorff95 += other.sums_[k].num_hausdorff95;
    sums_[k].num_surface_dice += other.sums_[k].num_surface_dice;
  }
}

std::vector<SurfaceScores> MeanSurfaceScores::means() const {
  const auto mean = [](double sum, int64_t count) {
    return count == 0 ? kNotANumber : sum / static_cast<double>(count);
  };
  std::vector<SurfaceScores> means;
  for (const Sum& sum : sums_)
    means.push_back(
        {mean(sum.hausdorff95, sum.num_hausdorff95), mean(sum.surface_dice, sum.num_surface_dice)});
  return means;
}

}  // namespace tessera
