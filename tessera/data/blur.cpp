#include "tessera/data/blur.h"

#include <algorithm>

#include "tessera/base/error.h"

namespace tessera {
namespace {

/// Of the pixels from -radius to +radius; their sum is 1.
std::vector<double> binomial_weights(int64_t radius) {
  std::vector<double> weights{1};
  for (int64_t pass = 0; pass < 2 * radius; ++pass) {
    weights.push_back(0);
    for (size_t i = weights.size() - 1; i > 0; --i)
      weights[i] = 0.5 * (weights[i] + weights[i - 1]);
    weights[0] *= 0.5;
  }
  return weights;
}

/// One axis of values of `box`, which becomes the range `to`.
std::vector<double> blur_along(const std::vector<double>& values, const Box& box, int axis,
                               const Range& to, int64_t image_size,
                               const std::vector<double>& weights) {
  int64_t outer = 1, inner = 1;
  for (int before = 0; before < axis; ++before) outer *= box[before].size();
  for (int after = axis + 1; after < box.num_axes(); ++after) inner *= box[after].size();
  const int64_t radius = std::ssize(weights) / 2;
  std::vector<double> result(outer * to.size() * inner, 0.0);
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < to.size(); ++i)
      for (int64_t tap = 0; tap < std::ssize(weights); ++tap) {
        const int64_t at = std::clamp<int64_t>(to.begin + i + tap - radius, 0, image_size - 1);
        const double* from = values.data() + (o * box[axis].size() + at - box[axis].begin) * inner;
        double* out = result.data() + (o * to.size() + i) * inner;
        for (int64_t k = 0; k < inner; ++k) out[k] += weights[tap] * from[k];
      }
  return result;
}

}  // namespace

Box grown_within(const Box& box, const Shape& image, int64_t margin) {
  Box grown;
  for (int axis = 0; axis < box.num_axes(); ++axis)
    grown.push_back(
        intersect({box[axis].begin - margin, box[axis].end + margin}, {0, image[axis]}));
  return grown;
}

std::vector<double> blur(std::vector<double> values, const Box& from, const Box& to,
                         const Shape& image, int64_t radius) {
  TESSERA_CHECK(from == grown_within(to, image, radius), "a blur of {} from {}", to_string(to),
                to_string(from));
  const std::vector<double> weights = binomial_weights(radius);
  Box box = from;
  for (int axis = 0; axis < to.num_axes(); ++axis) {
    values = blur_along(values, box, axis, to[axis], image[axis], weights);
    box[axis] = to[axis];
  }
  return values;
}

}  // namespace tessera
