#include "tessera/data/label_strips.h"

#include <algorithm>

namespace tessera {
namespace {

constexpr int64_t kLabelsAtOnce = 1 << 18;  // of one strip, at least a row

/// Rows of a strip of labels of this shape.
int64_t strip_rows(const Shape& shape) {
  const int64_t row = Box::whole(shape).volume() / shape[0];
  return std::clamp<int64_t>(kLabelsAtOnce / row, 1, shape[0]);
}

int64_t num_strips(const Dataset& data, int64_t sample) {
  if (!data.has_target(sample)) return 0;
  const Shape shape = data.target_shape_of(sample);
  if (shape.empty()) return 1;
  const int64_t rows = strip_rows(shape);
  return (shape[0] + rows - 1) / rows;
}

/// Without its labels.
LabelStrip strip_of(const Dataset& data, int64_t sample, int64_t number) {
  const Shape shape = data.target_shape_of(sample);
  LabelStrip strip{sample, Box::whole(shape)};
  if (shape.empty()) return strip;
  const int64_t rows = strip_rows(shape);
  strip.box[0] = {number * rows, std::min((number + 1) * rows, shape[0])};
  return strip;
}

LabelStrip loaded(const Dataset& data, LabelStrip strip) {
  strip.labels = at::empty(strip.box.shape(), at::kLong);
  data.load_target(strip.sample, strip.box, strip.labels);
  return strip;
}

}  // namespace

LabelStrips::LabelStrips(const Dataset& data, int64_t num_samples)
    : data_(data), num_samples_(num_samples) {
  for (int64_t place = 0; place < num_samples; ++place)
    first_strips_.push_back(first_strips_.back() + num_strips(data, sample_at(place)));
}

LabelStrip LabelStrips::place_of(int64_t index) const {
  const auto next = std::upper_bound(first_strips_.begin(), first_strips_.end(), index);
  const int64_t place = next - first_strips_.begin() - 1;
  return strip_of(data_, sample_at(place), index - first_strips_[place]);
}

LabelStrip LabelStrips::load(int64_t index) const { return loaded(data_, place_of(index)); }

void for_each_label_strip(const Dataset& data, int64_t sample,
                          const std::function<void(const LabelStrip&)>& visit) {
  const int64_t count = num_strips(data, sample);
  for (int64_t number = 0; number < count; ++number)
    visit(loaded(data, strip_of(data, sample, number)));
}

}  // namespace tessera
