#pragma once
// Which sample is entry e of batch b: a function of (seed, epoch) only, never of the rank or the
// number of ranks. A plan has no state, so a run resumes at any batch by naming it.
//
// Batches are numbered through all epochs: batch b is step b % batches_per_epoch() of epoch
// b / batches_per_epoch().
//
// Example:
//   BatchPlan plan({.num_samples = 64, .batch_size = 4, .seed = seed});
//   plan.sample(/*batch=*/17, /*entry=*/2);   // step 1 of epoch 1

#include <cstdint>
#include <memory>
#include <vector>

#include "tessera/base/random.h"

namespace tessera {

enum class BatchOrder {
  kShuffled,    // anew in each epoch
  kSequential,  // 0, 1, 2, ... in each epoch
};

/// What becomes of the samples of an epoch that do not fill its last batch.
enum class LastBatch {
  kDrop,  // they are left out; another epoch leaves out others
  kKeep,  // the last batch is smaller
  kWrap,  // the batch is filled from the epoch's beginning; those samples count twice
  kPad,   // the same, but the repeated samples' labels are kIgnoreLabel: each counts exactly once
          // (numbers cannot be ignored: there it is kWrap)
};

struct BatchPlanOptions {
  int64_t num_samples = 0;
  int64_t batch_size = 1;
  uint64_t seed = 0;
  BatchOrder order = BatchOrder::kShuffled;
  LastBatch last = LastBatch::kDrop;
  /// How often each sample is drawn in a shuffled epoch, relative to the others; empty: all alike.
  /// An epoch has num_samples draws in any case, and a sample occurs as often as its share of them
  /// says, rounded up or down at random.
  std::vector<double> weights = {};
};

class BatchPlan {
 public:
  /// Throws InvalidInput where there are no samples, or fewer than a batch and LastBatch::kDrop,
  /// and where weights are negative, not finite or all zero.
  explicit BatchPlan(const BatchPlanOptions& options);

  int64_t batch_size() const { return options_.batch_size; }
  int64_t batches_per_epoch() const { return batches_per_epoch_; }
  /// How many samples batch `batch` has: batch_size(), but for the last of an epoch under
  /// LastBatch::kKeep.
  int64_t size_of(int64_t batch) const;
  /// The size of the last batch of an epoch.
  int64_t last_size() const { return size_of(batches_per_epoch_ - 1); }
  int64_t epoch_of(int64_t batch) const { return batch / batches_per_epoch_; }

  int64_t sample(int64_t batch, int64_t entry) const;
  /// Whether the entry fills up the last batch of its epoch with a sample that was there before.
  bool is_repeat(int64_t batch, int64_t entry) const;
  /// Whether the entry must not count: a repeat under LastBatch::kPad.
  bool is_padding(int64_t batch, int64_t entry) const {
    return options_.last == LastBatch::kPad && is_repeat(batch, entry);
  }

 private:
  /// The entry's place among all places of its epoch, past num_samples for repeats.
  int64_t place(int64_t batch, int64_t entry) const;

  int64_t drawn_by_weight(const RandomKey& epoch, int64_t draw) const;

  BatchPlanOptions options_;
  /// Of weights: the draws that samples up to each have together; null: all samples are alike.
  std::shared_ptr<const std::vector<double>> cumulative_draws_;
  int64_t batches_per_epoch_ = 0;
};

}  // namespace tessera
