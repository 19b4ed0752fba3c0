#include "tessera/config/train_config.h"

#include <nlohmann/json.hpp>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/config/config_keys.h"
#include "tessera/files/json.h"

namespace tessera {
namespace {

using Json = nlohmann::ordered_json;

Json as_json(const ConfigValue& value) {
  return std::visit(
      [](const auto& held) -> Json {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, std::monostate>)
          return nullptr;
        else
          return held;
      },
      value);
}

/// None where the JSON is not of the key's type.
std::optional<ConfigValue> recorded_value(const ConfigKey& key, const Json& json) {
  static const TrainConfig defaults;
  if (json.is_null() && std::holds_alternative<std::monostate>(key.get(defaults)))
    return ConfigValue();
  switch (key.type) {
    case ConfigType::kFlag:
      if (json.is_boolean()) return json.get<bool>();
      break;
    case ConfigType::kWhole:
      if (json.is_number_integer()) return json.get<int64_t>();
      break;
    case ConfigType::kReal:
      if (json.is_number()) return json.get<double>();
      break;
    case ConfigType::kText:
    case ConfigType::kSizes:
    case ConfigType::kGrids:
      if (json.is_string()) return json.get<std::string>();
      break;
  }
  return std::nullopt;
}

/// Null where a configuration of an earlier version, or a damaged one, does not have it.
const Json* member(const Json& json, const std::string& table, const std::string& name) {
  const auto found = json.find(table);
  if (found == json.end() || !found->is_object()) return nullptr;
  const auto value = found->find(name);
  return value == found->end() ? nullptr : &*value;
}

/// For people: an empty text, or none at all, is the default.
std::string shown(const Json& value) {
  const bool empty = value.is_null() || (value.is_string() && value.get<std::string>().empty());
  return empty ? "the default" : cut_short(json_text(value));
}

void fill_in(TrainConfig& config) {
  if (!config.dtype) config.dtype = "float32";
  if (!config.epochs && !config.steps && config.target_epochs.empty()) config.epochs = 10;
  if (!config.learning_rate) config.learning_rate = config.optimiser == "sgd" ? 0.01 : 0.001;
  if (!config.weight_decay) config.weight_decay = config.optimiser == "adamw" ? 0.01 : 0.0;
  if (!config.gamma) config.gamma = config.schedule == "exponential" ? 0.95 : 0.1;
}

/// Unless the data says itself what to validate on, which nobody knows yet.
bool validates(const TrainConfig& config) {
  return config.validation_fraction > 0 || !config.fold.empty();
}

void check_together(const TrainConfig& config) {
  if (config.model.empty())
    throw_error<InvalidInput>("[MODEL] no model is given; name one, such as unet2d");
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
    throw_error<InvalidInput>("[--warmup-steps] {} leaves none of {}; use at most {}",
                              config.warmup_steps, counted(*config.steps, "step"),
                              *config.steps - 1);
  if (config.schedule == "plateau" && !validates(config))
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
  if (config.patience > 0 && !validates(config))
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
  Json json;
  for (const ConfigKey& key : config_keys()) json[key.table][key.name] = as_json(key.get(config));
  return json_text(json);
}

TrainConfig config_from_json(const std::string& text) {
  const Json json = parse_ordered_json(text);
  TrainConfig config;
  for (const ConfigKey& key : config_keys()) {
    const Json* const recorded = member(json, key.table, key.name);
    if (recorded == nullptr) continue;
    const std::string place = fmt::format("[{}] {}", key.table, key.name);
    const std::optional<ConfigValue> value = recorded_value(key, *recorded);
    if (!value)
      throw_error<InvalidInput>("{} is {}, which is not of its type", place, shown(*recorded));
    check(key, *value, place);
    key.set(config, *value);
  }
  return config;
}

WeightsTarget weights_target(const std::string& save_weights) {
  const std::string best = "best";
  if (save_weights == best) return {true, ""};
  if (save_weights.starts_with(best + ":")) return {true, save_weights.substr(best.size() + 1)};
  return {false, save_weights};
}

std::vector<std::string> changed_settings(const std::string& before, const TrainConfig& now) {
  // Both as they are written: a name with letters that JSON does not know is written with others.
  const Json recorded = parse_ordered_json(before), current = parse_ordered_json(to_json(now));
  static const TrainConfig defaults;
  const auto value_before = [&](const ConfigKey& key) {
    const Json* const value = member(recorded, key.table, key.name);
    return value ? *value : as_json(key.get(defaults));
  };
  const bool by_micro_batches =
      now.norm == "micro-batch" || value_before(config_key("--norm")) == "micro-batch";
  std::vector<std::string> changes;
  for (const ConfigKey& key : config_keys()) {
    const Json old_value = value_before(key), &new_value = current.at(key.table).at(key.name);
    const bool matters = key.effect == ConfigEffect::kNumbers ||
                         (key.effect == ConfigEffect::kMicroBatchNumbers && by_micro_batches);
    if (matters && old_value != new_value)
      changes.push_back(
          fmt::format("{} was {}, is {}", key.option, shown(old_value), shown(new_value)));
  }
  return changes;
}

}  // namespace tessera
