#pragma once
// The words in which the table of keys is written (config_keys.cpp), and nobody else's: a key from
// a member of the configuration, with its help, and what is legal, around it.
//
// Example:
//   below(0, 1, key("--momentum", "momentum", "momentum of sgd", &TrainConfig::momentum))

#include <limits>
#include <optional>
#include <type_traits>

#include "tessera/config/config_keys.h"

namespace tessera::config_words {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class T>
constexpr ConfigType type_of() {
  if constexpr (std::is_same_v<T, bool>) return ConfigType::kFlag;
  if constexpr (std::is_same_v<T, double>) return ConfigType::kReal;
  if constexpr (std::is_same_v<T, std::string>) return ConfigType::kText;
  return ConfigType::kWhole;
}

/// How a member's type travels in a ConfigValue.
template <class T>
using Carrier = std::conditional_t<std::is_same_v<T, uint64_t>, int64_t, T>;

template <class T, class Owner>
inline ConfigKey new_key(const char* option, const char* name, const char* help) {
  ConfigKey key{.table = {}, .name = name, .option = option, .help = help, .get = {}, .set = {}};
  const bool every_job = std::is_same_v<Owner, JobConfig>;
  key.scope = every_job ? ConfigScope::kJob : ConfigScope::kTraining;
  key.type = type_of<T>();
  return key;
}

template <class T, class Owner>
inline ConfigKey key(const char* option, const char* name, const char* help, T Owner::*member) {
  ConfigKey key = new_key<T, Owner>(option, name, help);
  key.get = [member](const TrainConfig& config) -> ConfigValue {
    return static_cast<Carrier<T>>(config.*member);
  };
  key.set = [member](TrainConfig& config, const ConfigValue& value) {
    config.*member = static_cast<T>(std::get<Carrier<T>>(value));
  };
  return key;
}

template <class T, class Owner>
inline ConfigKey key(const char* option, const char* name, const char* help,
                     std::optional<T> Owner::*member) {
  ConfigKey key = new_key<T, Owner>(option, name, help);
  key.get = [member](const TrainConfig& config) {
    return config.*member ? ConfigValue(*(config.*member)) : ConfigValue();
  };
  key.set = [member](TrainConfig& config, const ConfigValue& value) {
    if (std::holds_alternative<std::monostate>(value))
      (config.*member).reset();
    else
      config.*member = std::get<T>(value);
  };
  return key;
}

inline ConfigKey at_least(double low, ConfigKey key) {
  key.interval = {low, kInfinity, ConfigInterval::End::kClosed, ConfigInterval::End::kOpen};
  return key;
}
inline ConfigKey above(double low, ConfigKey key) {
  key.interval = {low, kInfinity, ConfigInterval::End::kOpen, ConfigInterval::End::kOpen};
  return key;
}
/// In [low, high).
inline ConfigKey below(double low, double high, ConfigKey key) {
  key.interval = {low, high, ConfigInterval::End::kClosed, ConfigInterval::End::kOpen};
  return key;
}
/// In [low, high].
inline ConfigKey within(double low, double high, ConfigKey key) {
  key.interval = {low, high, ConfigInterval::End::kClosed, ConfigInterval::End::kClosed};
  return key;
}
inline ConfigKey one_of(std::vector<std::string> choices, ConfigKey key) {
  key.choices = std::move(choices);
  return key;
}
inline ConfigKey excluding(std::vector<std::string> options, ConfigKey key) {
  key.excludes = std::move(options);
  return key;
}
inline ConfigKey formerly(const char* old_option, const char* old_name, ConfigKey key) {
  key.old_option = old_option;
  key.old_name = old_name;
  return key;
}
inline ConfigKey alias(std::vector<std::string> options, ConfigKey key) {
  key.aliases = std::move(options);
  return key;
}
/// The numbers of a run do not depend on it.
inline ConfigKey conduct(ConfigKey key) {
  key.effect = ConfigEffect::kConduct;
  return key;
}
inline ConfigKey by_micro_batches(ConfigKey key) {
  key.effect = ConfigEffect::kMicroBatchNumbers;
  return key;
}
inline ConfigKey sizes(ConfigKey key) {
  key.type = ConfigType::kSizes;
  return key;
}
inline ConfigKey grids(ConfigKey key) {
  key.type = ConfigType::kGrids;
  return key;
}

/// All that say nothing else.
inline std::vector<ConfigKey> conduct(std::vector<ConfigKey> keys) {
  for (ConfigKey& each : keys)
    if (each.effect == ConfigEffect::kNumbers) each.effect = ConfigEffect::kConduct;
  return keys;
}

}  // namespace tessera::config_words
