#include "tessera/train/configured.h"

#include "tessera/base/error.h"
#include "tessera/optim/averaged.h"

namespace tessera {
namespace {

/// Whether a lower value of the monitored metric is better.
bool monitor_falls(const TrainConfig& config) { return config.monitor == "loss"; }

Schedule schedule_named(const std::string& name) {
  if (name == "step") return Schedule::kStep;
  if (name == "exponential") return Schedule::kExponential;
  if (name == "poly") return Schedule::kPoly;
  if (name == "plateau") return Schedule::kPlateau;
  if (name == "cosine") return Schedule::kCosine;
  if (name == "one_cycle") return Schedule::kOneCycle;
  TESSERA_CHECK(name == "constant", "schedule {}", name);
  return Schedule::kConstant;
}

std::unique_ptr<Optimiser> plain_optimiser(const TrainConfig& config) {
  if (config.optimiser == "adam")
    return adam({.learning_rate = config.learning_rate.value(),
                 .beta1 = config.beta1,
                 .beta2 = config.beta2,
                 .epsilon = config.epsilon,
                 .weight_decay = config.weight_decay.value()});
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

}  // namespace

std::unique_ptr<Optimiser> configured_optimiser(const TrainConfig& config) {
  std::unique_ptr<Optimiser> optimiser = plain_optimiser(config);
  return config.ema > 0 ? averaged(std::move(optimiser), config.ema) : std::move(optimiser);
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
  options.gamma = config.gamma.value();
  options.power = config.power;
  options.min_learning_rate = config.min_learning_rate;
  options.pct_start = config.pct_start;
  options.div_factor = config.div_factor;
  options.final_div_factor = config.final_div_factor;
  return LearningRate(options);
}

std::optional<Plateau> configured_plateau(const TrainConfig& config) {
  if (config.schedule != "plateau") return std::nullopt;
  return Plateau({.learning_rate = config.learning_rate.value(),
                  .factor = config.gamma.value(),
                  .patience = config.plateau_patience,
                  .threshold = config.plateau_threshold,
                  .min_learning_rate = config.min_learning_rate,
                  .mode = monitor_falls(config) ? Plateau::Mode::kMin : Plateau::Mode::kMax});
}

EarlyStopping configured_early_stopping(const TrainConfig& config) {
  return EarlyStopping(
      {.patience = config.patience,
       .min_delta = config.min_delta,
       .mode = monitor_falls(config) ? EarlyStopping::Mode::kMin : EarlyStopping::Mode::kMax});
}

}  // namespace tessera
