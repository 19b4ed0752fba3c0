#include "tessera/train/run_length.h"

#include <algorithm>
#include <optional>

#include "tessera/base/counts.h"
#include "tessera/base/domain_names.h"
#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {
namespace {

/// For each target; 0: any number.
std::vector<int64_t> most_epochs(const std::string& given, int64_t num_targets) {
  if (given.empty()) return std::vector<int64_t>(num_targets, 0);
  if (num_targets == 0)
    throw_error<InvalidInput>(
        "[--target-epochs] the network reads the source alone; leave it out, or use a model for "
        "several domains, such as dsn:targets=2");
  std::vector<int64_t> epochs;
  for (const std::string& text : split_text(given, '/')) {
    const int64_t count = read_number<int64_t>(text).value_or(-1);
    if (count < 0 || count > kMostCounted)
      throw_error<InvalidInput>(
          "[--target-epochs] {} is not legal; use whole numbers from 0 on with '/' between", given);
    epochs.push_back(count);
  }
  if (epochs.size() == 1) epochs.assign(num_targets, epochs[0]);
  if (std::ssize(epochs) != num_targets)
    throw_error<InvalidInput>(
        "[--target-epochs] has {}, and there are {}; give one number for all, or one for each",
        counted(std::ssize(epochs), "number"), counted(num_targets, "target"));
  return epochs;
}

/// The target that is through first, after how many steps.
struct FirstThrough {
  int target = 0;
  int64_t epochs = 0;
  int64_t steps = 0;
};

std::optional<FirstThrough> first_through(const TrainConfig& config,
                                          const std::vector<BatchPlan>& targets) {
  const std::vector<int64_t> epochs = most_epochs(config.target_epochs, std::ssize(targets));
  std::optional<FirstThrough> first;
  for (size_t i = 0; i < targets.size(); ++i) {
    if (epochs[i] == 0) continue;
    const int64_t batches = product_of({epochs[i], targets[i].batches_per_epoch()});
    const int64_t steps = batches / config.accumulation;
    if (!first || steps < first->steps) first = {static_cast<int>(i) + 1, epochs[i], steps};
  }
  return first;
}

void check_enough(const FirstThrough& first, int64_t steps) {
  if (first.steps < std::max<int64_t>(1, steps))
    throw_error<InvalidInput>(
        "[--target-epochs] the run has {}, and {} of {} are through after {}; give at most that "
        "many --steps, or more epochs",
        counted(std::max<int64_t>(1, steps), "step"), counted(first.epochs, "epoch"),
        domain_name(first.target), first.steps);
}

}  // namespace

RunLength run_length(const TrainConfig& config, const BatchPlan& source,
                     const std::vector<BatchPlan>& targets) {
  RunLength length;
  length.steps_per_epoch = std::max<int64_t>(1, source.batches_per_epoch() / config.accumulation);
  const std::optional<FirstThrough> first = first_through(config, targets);
  const bool is_own = config.steps || config.epochs || !first;
  const int64_t epochs = config.epochs.value_or(10);
  if (is_own)
    length.steps = config.steps ? *config.steps : product_of({length.steps_per_epoch, epochs});
  else
    length.steps = first->steps;
  if (first) check_enough(*first, length.steps);
  if (length.steps > kMostCounted)
    throw_error<InvalidInput>("[--epochs] {} of {} are too many; use at most {}",
                              counted(epochs, "epoch"), counted(length.steps_per_epoch, "step"),
                              std::max<int64_t>(1, kMostCounted / length.steps_per_epoch));
  return length;
}

}  // namespace tessera
