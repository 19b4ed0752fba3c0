#pragma once
// How many steps a run has. --epochs counts passes over the source's data, --steps updates; a
// target's data begin again whenever they are through. --target-epochs says how often they may: a
// run that would take more is refused, and one that says no length of its own ends where the first
// target has had its passes.
//
// Example:
//   const RunLength length = run_length(config, source, {target1, target2});

#include <cstdint>
#include <vector>

#include "tessera/config/train_config.h"
#include "tessera/data/batch_plan.h"

namespace tessera {

struct RunLength {
  int64_t steps_per_epoch = 1;  // of the source
  int64_t steps = 0;
};

/// Throws InvalidInput where the run would be too long, with the length that is left.
RunLength run_length(const TrainConfig& config, const BatchPlan& source,
                     const std::vector<BatchPlan>& targets);

}  // namespace tessera
