#pragma once
// Applies the network to the validation set and scores it: each rank counts its own pixels, the
// counts are summed. Every sample counts once, whatever the batch size.

#include <optional>

#include "tessera/runtime/executor.h"
#include "tessera/train/metrics.h"
#include "tessera/train/training_job.h"

namespace tessera {

struct ValidationResult {
  double loss = 0;
  bool has_loss = true;               // an evaluation may have scores alone
  std::vector<ScoreName> names = {};  // of the scores that make sense; of numbers there are none
  Scores scores = {};
  std::optional<ConfusionCounts> counts = {};  // of labels; a result from a file has none
  int64_t top5_hits = 0;
  double weight = 0;  // of the loss among those of other samples
};

/// "loss 0.1234, accuracy 0.900, mean IoU 0.800, Dice 0.850"; of a classifier "loss 0.1234,
/// accuracy 0.900, top-5 0.990".
std::string to_string(const ValidationResult& result);

/// Collective over all ranks: the sums of their numbers, on each.
void sum_over_ranks(std::vector<double>* numbers, Transport& transport);

class Validator {
 public:
  /// `set` is the job's, or one of its targets'.
  Validator(const TrainingJob& job, const ValidationSet& set, ParameterStore* parameters,
            Transport* transport);

  /// Collective over all ranks; the same result on each.
  ValidationResult run();

 private:
  /// Of the batch; the smaller one of the last batch.
  Executor& executor_of(int64_t batch);
  void count_batch(int64_t batch, ConfusionCounts* counts, int64_t* top5_hits);
  ValidationResult mean_loss();
  double run_batch(int64_t batch);
  bool counts_top5() const;

  const TrainingJob& job_;
  const ValidationSet& set_;
  BatchLoader loader_;
  std::vector<ScoreName> names_;
  Transport* transport_;
  Executor executor_;
  std::optional<Executor> partial_executor_;
};

}  // namespace tessera
