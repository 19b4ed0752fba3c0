#include "tessera/train/configured.h"

#include "tessera/base/error.h"

namespace tessera {
namespace {

Schedule schedule_named(const std::string& name) {
  if (name == "step") return Schedule::kStep;
  if (name == "cosine") return Schedule::kCosine;
  if (name == "one_cycle") return Schedule::kOneCycle;
  TESSERA_CHECK(name == "constant", "schedule {}", name);
  return Schedule::kConstant;
}

}  // namespace

std::unique_ptr<Optimiser> configured_optimiser(const TrainConfig& config) {
  if (config.optimiser == "adamw")
    return adamw({.learning_rate = config.learning_rate.value(),
                  .beta1 = config.beta1,
                  .beta2 = config.beta2,
                  .epsilon = config.epsilon,
                  .weight_decay = config.weight_decay.value()});
  TESSERA_CHECK(config.optimiser == "sgd", "optimiser {}", config.optimiser);
  return sgd({.learning_rate = config.learning_rate.value(),
              .momentum = config.momentum,
              .weight_decay = config.weight_decay.value(),
              .nesterov = config.nesterov});
}

LearningRate configured_learning_rate(const TrainConfig& config, int64_t total_steps,
                                      int64_t steps_per_epoch) {
  LearningRateOptions options;
  options.schedule = schedule_named(config.schedule);
  options.learning_rate = config.learning_rate.value();
  options.total_steps = total_steps;
  options.steps_per_epoch = steps_per_epoch;
  options.warmup_steps = config.warmup_steps;
  options.step_epochs = config.step_epochs;
  options.gamma = config.gamma;
  options.min_learning_rate = config.min_learning_rate;
  options.pct_start = config.pct_start;
  options.div_factor = config.div_factor;
  options.final_div_factor = config.final_div_factor;
  return LearningRate(options);
}

EarlyStopping configured_early_stopping(const TrainConfig& config) {
  const bool falls = config.monitor == "loss";
  return EarlyStopping({.patience = config.patience,
                        .min_delta = config.min_delta,
                        .mode = falls ? EarlyStopping::Mode::kMin : EarlyStopping::Mode::kMax});
}

}  // namespace tessera
