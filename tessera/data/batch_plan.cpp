#include "tessera/data/batch_plan.h"

#include <algorithm>
#include <cmath>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/data/permutation.h"

namespace tessera {
namespace {

/// Sums of the weights, scaled so that the last is the number of samples, exactly.
std::vector<double> cumulated_draws(const std::vector<double>& weights) {
  std::vector<double> sums;
  double sum = 0;
  for (double weight : weights) {
    if (!(weight >= 0) || !std::isfinite(weight))
      throw_error<InvalidInput>("[batches] the weight {} of sample {}; use numbers from 0 on",
                                weight, sums.size());
    sums.push_back(sum += weight);
  }
  if (!(sum > 0) || !std::isfinite(sum))
    throw_error<InvalidInput>(
        "[batches] the weights of {} have the sum {}; give some a weight above 0",
        counted(std::ssize(weights), "sample"), sum);
  for (double& part : sums) part = static_cast<double>(weights.size()) * (part / sum);
  return sums;
}

}  // namespace

BatchPlan::BatchPlan(const BatchPlanOptions& options) : options_(options) {
  const int64_t samples = options.num_samples, size = options.batch_size;
  if (samples < 1) throw_error<InvalidInput>("[batches] the data set has no samples");
  if (size < 1) throw_error<InvalidInput>("[batches] a batch has at least 1 sample, got {}", size);
  const bool drop = options.last == LastBatch::kDrop;
  batches_per_epoch_ = samples / size + (!drop && samples % size != 0 ? 1 : 0);
  if (batches_per_epoch_ == 0)
    throw_error<InvalidInput>(
        "[batches] {} cannot fill a batch of {}; use a smaller batch or more samples",
        counted(samples, "sample"), size);
  if (options.weights.empty()) return;
  TESSERA_CHECK(std::ssize(options.weights) == samples, "{} weights of {} samples",
                options.weights.size(), samples);
  cumulative_draws_ = std::make_shared<const std::vector<double>>(cumulated_draws(options.weights));
  options_.weights.clear();
}

int64_t BatchPlan::size_of(int64_t batch) const {
  const int64_t rest = options_.num_samples % options_.batch_size;
  const bool is_last = batch % batches_per_epoch_ == batches_per_epoch_ - 1;
  return options_.last == LastBatch::kKeep && is_last && rest != 0 ? rest : options_.batch_size;
}

int64_t BatchPlan::place(int64_t batch, int64_t entry) const {
  TESSERA_CHECK(batch >= 0 && 0 <= entry && entry < options_.batch_size,
                "entry {} of batch {}, batches have {}", entry, batch, options_.batch_size);
  return batch % batches_per_epoch_ * options_.batch_size + entry;
}

int64_t BatchPlan::sample(int64_t batch, int64_t entry) const {
  const int64_t at = place(batch, entry) % options_.num_samples;
  if (options_.order == BatchOrder::kSequential) return at;
  const RandomKey key =
      RandomKey(options_.seed).with("shuffle").with(static_cast<uint64_t>(epoch_of(batch)));
  const int64_t draw = permuted(key, at, options_.num_samples);
  return cumulative_draws_ ? drawn_by_weight(key, draw) : draw;
}

/// Systematic sampling: draws stand at equal distances on the line of all weights, shifted by one
/// random number, so that equal weights give each sample once.
int64_t BatchPlan::drawn_by_weight(const RandomKey& epoch, int64_t draw) const {
  const std::vector<double>& ends = *cumulative_draws_;
  const double at = static_cast<double>(draw) + epoch.with("offset").uniform(0);
  const auto found = std::upper_bound(ends.begin(), ends.end(), at);
  // Rounding may put the last draw at the very end, and samples without weight may lie there.
  return std::min(found, std::lower_bound(ends.begin(), ends.end(), ends.back())) - ends.begin();
}

bool BatchPlan::is_repeat(int64_t batch, int64_t entry) const {
  return place(batch, entry) >= options_.num_samples;
}

}  // namespace tessera
