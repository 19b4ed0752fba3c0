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
  // A label for each image has no axes, and an empty shape of others says that sizes differ.
  const bool same_targets = !target_shape_.empty() || !source_->per_pixel();
  if ((!image_shape_.empty() && same_targets) || samples_.empty()) return;
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

std::vector<int64_t> samples_with_targets(const Dataset& source) {
  std::vector<int64_t> samples;
  for (int64_t sample = 0; sample < source.size(); ++sample)
    if (source.has_target(sample)) samples.push_back(sample);
  return samples;
}

std::optional<Fold> parse_fold(const std::string& text) {
  if (text.empty()) return {};
  const size_t slash = std::min(text.find('/'), text.size());
  const auto index = read_number<int64_t>(text.substr(0, slash));
  const auto count = read_number<int64_t>(slash < text.size() ? text.substr(slash + 1) : "");
  if (!index || !count || *count < 2 || *index < 1 || *index > *count)
    throw_error<InvalidInput>(
        "[--fold] '{}' is not a fold; write i/k with k at least 2 and i from 1 to k, such as 1/5",
        text);
  return Fold{*index, *count};
}

namespace {

/// Where the fold begins and ends in the shuffled order; of a fraction: how many are kept.
std::pair<int64_t, int64_t> validated_places(int64_t total, double fraction,
                                             const std::optional<Fold>& fold) {
  if (fold) {
    if (fold->count > total)
      throw_error<InvalidInput>("[--fold] {} of {} leave some empty; use at most {}",
                                counted(fold->count, "fold"), counted(total, "sample"), total);
    return {total * (fold->index - 1) / fold->count, total * fold->index / fold->count};
  }
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
  return {0, kept};
}

}  // namespace

DatasetSplit split_dataset(std::shared_ptr<const Dataset> source, double fraction, uint64_t seed,
                           std::optional<Fold> fold) {
  std::vector<int64_t> pool, train, validation;
  for (int64_t sample = 0; sample < source->size(); ++sample) {
    const SamplePart part = source->part_of(sample);
    if (part == SamplePart::kValidation)
      validation.push_back(sample);
    else if (part != SamplePart::kTest)
      pool.push_back(sample);
  }
  if (pool.empty())
    throw_error<InvalidInput>(
        "[split] none of {} is there to train on: all are for validation or for tests",
        counted(source->size(), "sample"));
  if (fold && !validation.empty())
    throw_error<InvalidInput>(
        "[--fold] the data set has {} of its own for validation; leave --fold out, or let the data "
        "say nothing about validation",
        counted(std::ssize(validation), "sample"));
  if (!validation.empty()) {
    train = pool;
  } else {
    const auto total = std::ssize(pool);
    const auto [begin, end] = validated_places(total, fraction, fold);
    const RandomKey key = RandomKey(seed).with("validation");
    for (int64_t place = 0; place < total; ++place)
      (begin <= place && place < end ? validation : train)
          .push_back(pool[permuted(key, place, total)]);
    // In the files' order, which reads fastest; the batch plan decides what comes when.
    std::sort(train.begin(), train.end());
    std::sort(validation.begin(), validation.end());
  }
  DatasetSplit split{std::make_shared<Subset>(source, std::move(train)), nullptr};
  if (!validation.empty()) split.validation = std::make_shared<Subset>(source, validation);
  return split;
}

}  // namespace tessera
