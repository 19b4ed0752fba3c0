#include "tessera/config/train_config.h"

#include <nlohmann/json.hpp>

#include "tessera/base/error.h"
#include "tessera/config/config_keys.h"
#include "tessera/files/json.h"

namespace tessera {
namespace {

void fill_in(TrainConfig& config) {
  if (!config.dtype) config.dtype = "float32";
  if (!config.epochs && !config.steps) config.epochs = 10;
  if (!config.learning_rate) config.learning_rate = config.optimiser == "sgd" ? 0.01 : 0.001;
  if (!config.weight_decay) config.weight_decay = config.optimiser == "adamw" ? 0.01 : 0.0;
  if (!config.gamma) config.gamma = config.schedule == "exponential" ? 0.95 : 0.1;
}

void check_together(const TrainConfig& config) {
  if (config.model.empty())
    throw_error<InvalidInput>("[MODEL] no model is given; name one, such as unet2d");
  if (config.folder.empty())
    throw_error<InvalidInput>("[--run] the run folder is empty; give a path");
  if (config.resume.empty())
    throw_error<InvalidInput>("[--resume] is empty; use auto, no or a checkpoint's path");
  if (config.epochs && config.steps)
    throw_error<InvalidInput>("[--epochs] {} and [--steps] {} exclude each other; give one of them",
                              *config.epochs, *config.steps);
  if (config.optimiser == "sgd" && config.nesterov && config.momentum == 0)
    throw_error<InvalidInput>("[--nesterov] needs momentum; give --momentum 0.9, or leave it out");
  if (config.schedule == "cosine" && config.min_learning_rate > *config.learning_rate)
    throw_error<InvalidInput>(
        "[--min-learning-rate] {} is more than the learning rate {}; give less",
        config.min_learning_rate, *config.learning_rate);
  if (config.steps && config.warmup_steps >= *config.steps)
    throw_error<InvalidInput>("[--warmup-steps] {} leaves none of the {} steps; use at most {}",
                              config.warmup_steps, *config.steps, *config.steps - 1);
  if (config.schedule == "plateau" && config.validation_fraction == 0)
    throw_error<InvalidInput>(
        "[--learning-rate-schedule] plateau needs validation, and --validation-fraction is 0; give "
        "it 0.1, say, or take another schedule");
  if (config.schedule == "plateau" && *config.gamma >= 1)
    throw_error<InvalidInput>(
        "[--gamma] {} does not lower the learning rate; with plateau it must be below 1",
        *config.gamma);
  if (config.skip_mismatched && config.init_weights.empty())
    throw_error<InvalidInput>(
        "[--skip-mismatched] is about the file of --init-weights, and none is given; give one, or "
        "leave it out");
  if (config.patience > 0 && config.validation_fraction == 0)
    throw_error<InvalidInput>(
        "[--patience] {} needs validation, and --validation-fraction is 0; give it 0.1, say, or "
        "leave "
        "--patience out",
        config.patience);
}

}  // namespace

TrainConfig resolved(TrainConfig config) {
  fill_in(config);
  for (const ConfigKey& key : config_keys())
    check(key, key.get(config), fmt::format("[{}]", key.option));
  check_together(config);
  return config;
}

void check_job_config(const JobConfig& config) {
  TrainConfig all;
  static_cast<JobConfig&>(all) = config;
  for (const ConfigKey& key : config_keys())
    if (key.scope == ConfigScope::kJob) check(key, key.get(all), fmt::format("[{}]", key.option));
}

std::string to_json(const TrainConfig& config) {
  nlohmann::ordered_json json;
  for (const ConfigKey& key : config_keys())
    std::visit(
        [&](const auto& value) {
          using Value = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<Value, std::monostate>)
            json[key.table][key.name] = nullptr;
          else
            json[key.table][key.name] = value;
        },
        key.get(config));
  return json_text(json);
}

}  // namespace tessera
