#include <algorithm>

#include "tessera/augment/decorator.h"
#include "tessera/augment/image_statistics.h"
#include "tessera/augment/intensities.h"
#include "tessera/augment/per_sample.h"
#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {
namespace {

/// (x - offset) / divisor, and for ranges what is beyond 0 and 1 cut off.
struct ChannelRule {
  double offset = 0, divisor = 1;
  bool cut_off = false;
};
using ChannelRules = std::vector<ChannelRule>;

class NormalisedImages : public DatasetDecorator {
 public:
  NormalisedImages(std::shared_ptr<const Dataset> source, const Intensities& intensities)
      : DatasetDecorator(std::move(source)), intensities_(intensities) {}

  std::set<PixelType> pixel_types() const override { return {}; }
  void load_image(Sample sample, const Box& box, at::Tensor target) const override;

 private:
  ChannelRules rules_for(int64_t sample) const;

  const Intensities intensities_;
  mutable PerSample<ChannelRules> found_;
};

/// A divisor of 0 is that of an image, or a range, of one value.
ChannelRule range_rule(double low, double high) { return {low, high > low ? high - low : 1, true}; }

ChannelRules NormalisedImages::rules_for(int64_t sample) const {
  using Kind = Intensities::Kind;
  const int64_t channels = source().image_shape_of(sample).at(0);
  ChannelRules rules;
  if (intensities_.kind == Kind::kFixed) {
    if (std::ssize(intensities_.means) != channels)
      throw_error<InvalidInput>(
          "[--normalise] sample {} has {}, the numbers of the training set are for {}; give images "
          "like those",
          source().name_of(sample), counted(channels, "channel"), intensities_.means.size());
    for (int64_t channel = 0; channel < channels; ++channel)
      rules.push_back({intensities_.means[channel], intensities_.deviations[channel]});
  } else if (intensities_.kind == Kind::kWindow) {
    rules.assign(channels, range_rule(intensities_.low, intensities_.high));
  } else if (intensities_.kind == Kind::kPercentiles) {
    for (const auto& [low, high] :
         image_percentiles(source(), sample, intensities_.low, intensities_.high))
      rules.push_back(range_rule(low, high));
  } else {
    for (const ImageMoments& moments : image_moments(source(), sample))
      rules.push_back({moments.mean, moments.deviation() > 0 ? moments.deviation() : 1});
  }
  return rules;
}

void NormalisedImages::load_image(Sample sample, const Box& box, at::Tensor target) const {
  if (box.empty()) return;
  const ChannelRules& rules = found_.get(sample.index, [&] { return rules_for(sample.index); });
  at::Tensor values = at::empty(box.shape(), at::kDouble);
  source().load_image(sample, box, values);
  double* data = values.data_ptr<double>();
  const int64_t plane = values.numel() / box[0].size();
  for (int64_t channel = box[0].begin; channel < box[0].end; ++channel) {
    const ChannelRule& rule = rules[channel];
    for (int64_t i = 0; i < plane; ++i, ++data) {
      *data = (*data - rule.offset) / rule.divisor;
      if (rule.cut_off) *data = std::clamp(*data, 0.0, 1.0);  // NaN stays
    }
  }
  target.copy_(values);
}

}  // namespace

std::shared_ptr<const Dataset> normalised(std::shared_ptr<const Dataset> source,
                                          const Intensities& intensities) {
  if (intensities.kind == Intensities::Kind::kNone) return source;
  return std::make_shared<NormalisedImages>(std::move(source), intensities);
}

}  // namespace tessera
