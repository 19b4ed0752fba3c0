#include "tessera/data/batch_plan.h"

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/data/permutation.h"

namespace tessera {

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
  return permuted(key, at, options_.num_samples);
}

bool BatchPlan::is_repeat(int64_t batch, int64_t entry) const {
  return place(batch, entry) >= options_.num_samples;
}

}  // namespace tessera
