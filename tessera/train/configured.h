#pragma once
// The parts of a training run as a resolved configuration asks for them.

#include <memory>
#include <optional>

#include "tessera/config/train_config.h"
#include "tessera/optim/learning_rate.h"
#include "tessera/optim/optimiser.h"
#include "tessera/optim/plateau.h"
#include "tessera/train/early_stopping.h"

namespace tessera {

/// `config` comes from resolved().
std::unique_ptr<Optimiser> configured_optimiser(const TrainConfig& config);
/// Steps are updates of the weights. Throws InvalidInput where the warm-up leaves no step.
LearningRate configured_learning_rate(const TrainConfig& config, int64_t total_steps,
                                      int64_t steps_per_epoch);
/// None for schedules that are functions of the step alone.
std::optional<Plateau> configured_plateau(const TrainConfig& config);
/// Of the monitored metric: the loss should fall, the others should rise.
EarlyStopping configured_early_stopping(const TrainConfig& config);

}  // namespace tessera
