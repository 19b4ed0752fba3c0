#include "tessera/data/label_strips.h"

#include <algorithm>

namespace tessera {
namespace {

constexpr int64_t kLabelsAtOnce = 1 << 18;  // of one strip, at least a row

}  // namespace

LabelStrips::LabelStrips(const Dataset& data, int64_t num_samples)
    : data_(data), num_samples_(num_samples), shape_(data.target_shape()) {
  if (shape_.empty()) return;
  const int64_t row = Box::whole(shape_).volume() / shape_[0];
  rows_ = std::clamp<int64_t>(kLabelsAtOnce / row, 1, shape_[0]);
  strips_per_sample_ = (shape_[0] + rows_ - 1) / rows_;
}

LabelStrip LabelStrips::load(int64_t index) const {
  LabelStrip strip;
  strip.sample = index / strips_per_sample_ * data_.size() / num_samples_;
  strip.box = Box::whole(shape_);
  if (!shape_.empty()) {
    const int64_t begin = index % strips_per_sample_ * rows_;
    strip.box[0] = {begin, std::min(begin + rows_, shape_[0])};
  }
  strip.labels = at::empty(strip.box.shape(), at::kLong);
  data_.load_target(strip.sample, strip.box, strip.labels);
  return strip;
}

}  // namespace tessera
