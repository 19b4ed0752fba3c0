#include "tessera/augment/gaussian_blur.h"

#include <algorithm>
#include <cmath>

namespace tessera {
namespace {

/// The blurred pixels at one position of the axis, in the order of the distances.
template <class Offset>
void add_weighted(const double* from, const std::vector<double>& weights, int64_t position,
                  const Offset& offset, int64_t count, double* to) {
  const double* const here = from + offset(position);
  for (int64_t i = 0; i < count; ++i) to[i] = weights[0] * here[i];
  for (int64_t distance = 1; distance < std::ssize(weights); ++distance) {
    const double* const before = from + offset(position - distance);
    const double* const after = from + offset(position + distance);
    for (int64_t i = 0; i < count; ++i) to[i] += weights[distance] * (before[i] + after[i]);
  }
}

}  // namespace

std::vector<double> gaussian_weights(double sigma) {
  std::vector<double> weights;
  double total = 0;
  const auto radius = static_cast<int64_t>(std::ceil(3 * sigma));
  for (int64_t distance = 0; distance <= radius; ++distance) {
    const double away = static_cast<double>(distance) / sigma;
    weights.push_back(std::exp(-away * away / 2));
    total += distance == 0 ? weights.back() : 2 * weights.back();
  }
  for (double& weight : weights) weight /= total;
  return weights;
}

Box with_halo(const Box& box, const Shape& shape, int64_t radius) {
  Box grown = box;
  for (int axis = 1; axis < box.num_axes(); ++axis)
    grown[axis] = intersect({box[axis].begin - radius, box[axis].end + radius}, {0, shape[axis]});
  return grown;
}

at::Tensor blurred(const at::Tensor& read, const Box& held, const Box& box, const Shape& shape,
                   const std::vector<double>& weights) {
  at::Tensor values = read;
  Box now = held;
  for (int axis = 1; axis < box.num_axes(); ++axis) {
    Box next = now;
    next[axis] = box[axis];
    at::Tensor made = at::empty(next.shape(), at::kDouble);
    int64_t outer = 1, inner = 1;
    for (int other = 0; other < axis; ++other) outer *= now[other].size();
    for (int other = axis + 1; other < now.num_axes(); ++other) inner *= now[other].size();
    const double* from = values.data_ptr<double>();
    double* to = made.data_ptr<double>();
    const auto offset = [&](int64_t position) {  // of the pixel at this position, or at the border
      return (std::clamp<int64_t>(position, 0, shape[axis] - 1) - now[axis].begin) * inner;
    };
    for (int64_t o = 0; o < outer; ++o, from += now[axis].size() * inner)
      for (int64_t position = next[axis].begin; position < next[axis].end; ++position, to += inner)
        add_weighted(from, weights, position, offset, inner, to);
    values = made;
    now = next;
  }
  return values;
}

}  // namespace tessera
