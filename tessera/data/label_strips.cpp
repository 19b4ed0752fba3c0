#include "tessera/data/label_strips.h"

#include <algorithm>

namespace tessera {
namespace {

constexpr int64_t kLabelsAtOnce = 1 << 18;  // of one strip, at least a row

int64_t rows_of_strip(const Shape& shape) {
  const int64_t row = Box::whole(shape).volume() / shape[0];
  return std::clamp<int64_t>(kLabelsAtOnce / row, 1, shape[0]);
}

int64_t num_strips(const Shape& shape) {
  if (shape.empty()) return 1;
  const int64_t rows = rows_of_strip(shape);
  return (shape[0] + rows - 1) / rows;
}

LabelStrip load_strip(const Dataset& data, int64_t sample, const Shape& shape, int64_t number) {
  LabelStrip strip{sample, Box::whole(shape), {}};
  if (!shape.empty()) {
    const int64_t rows = rows_of_strip(shape);
    strip.box[0] = {number * rows, std::min((number + 1) * rows, shape[0])};
  }
  strip.labels = at::empty(strip.box.shape(), at::kLong);
  data.load_target(sample, strip.box, strip.labels);
  return strip;
}

/// The i-th of `num_samples` at equal distances.
int64_t chosen_sample(const Dataset& data, int64_t num_samples, int64_t i) {
  return i * data.size() / num_samples;
}

}  // namespace

LabelStrips::LabelStrips(const Dataset& data, int64_t num_samples)
    : data_(data), num_samples_(num_samples), first_strips_{0} {
  for (int64_t i = 0; i < num_samples; ++i) {
    const Shape shape = data.target_shape_of(chosen_sample(data, num_samples, i));
    first_strips_.push_back(first_strips_.back() + num_strips(shape));
  }
}

LabelStrip LabelStrips::load(int64_t index) const {
  const auto after = std::upper_bound(first_strips_.begin(), first_strips_.end(), index);
  const int64_t sample = chosen_sample(data_, num_samples_, after - first_strips_.begin() - 1);
  return load_strip(data_, sample, data_.target_shape_of(sample), index - *(after - 1));
}

void for_each_label_strip(const Dataset& data, int64_t sample,
                          const std::function<void(const LabelStrip&)>& visit) {
  const Shape shape = data.target_shape_of(sample);
  for (int64_t number = 0; number < num_strips(shape); ++number)
    visit(load_strip(data, sample, shape, number));
}

}  // namespace tessera
