#include "tessera/data/subset.h"

#include <algorithm>
#include <cmath>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/data/permutation.h"

namespace tessera {

Subset::Subset(std::shared_ptr<const Dataset> source, std::vector<int64_t> samples)
    : source_(std::move(source)), samples_(std::move(samples)) {
  for (int64_t sample : samples_)
    if (sample < 0 || sample >= source_->size())
      throw_error<InvalidInput>("[subset] sample {} is outside the data set; it has 0 to {}",
                                sample, source_->size() - 1);
  image_shape_ = source_->image_shape();
  target_shape_ = source_->target_shape();
  if (!image_shape_.empty() || samples_.empty()) return;
  const int64_t first = samples_.front();
  if (std::ranges::all_of(samples_, [&](int64_t sample) {
        return source_->image_shape_of(sample) == source_->image_shape_of(first) &&
               source_->target_shape_of(sample) == source_->target_shape_of(first);
      })) {
    image_shape_ = source_->image_shape_of(first);
    target_shape_ = source_->target_shape_of(first);
  }
}

void Subset::load_image(Sample sample, const Box& box, at::Tensor target) const {
  source_->load_image({original(sample), sample.epoch}, box, target);
}

void Subset::load_target(Sample sample, const Box& box, at::Tensor target) const {
  source_->load_target({original(sample), sample.epoch}, box, target);
}

DatasetSplit split_dataset(std::shared_ptr<const Dataset> source, double fraction, uint64_t seed) {
  const int64_t total = source->size();
  if (!(fraction >= 0 && fraction < 1))
    throw_error<InvalidInput>("[split] the validation fraction must be in [0, 1), got {}",
                              fraction);
  int64_t kept = std::llround(fraction * static_cast<double>(total));
  if (fraction > 0) kept = std::max<int64_t>(kept, 1);
  if (kept >= total)
    throw_error<InvalidInput>(
        "[split] {} of {} for validation leaves none to train on; use a smaller fraction or "
        "more samples",
        kept, counted(total, "sample"));
  const RandomKey key = RandomKey(seed).with("validation");
  std::vector<int64_t> train, validation;
  for (int64_t place = 0; place < total; ++place)
    (place < kept ? validation : train).push_back(permuted(key, place, total));
  // In the files' order, which reads fastest; the batch plan decides what comes when.
  std::sort(train.begin(), train.end());
  std::sort(validation.begin(), validation.end());
  DatasetSplit split{std::make_shared<Subset>(source, std::move(train)), nullptr};
  if (kept > 0) split.validation = std::make_shared<Subset>(source, std::move(validation));
  return split;
}

}  // namespace tessera
