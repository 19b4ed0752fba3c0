#pragma once
// One source of configuration: a TOML file, or the command line. A layer replaces what lies below
// it. Options that exclude each other (epochs and steps) are an error within one layer; in a layer
// of its own, --steps replaces the epochs of the layer below.
//
// Example:
//   TrainConfig config;
//   apply_layer(config, read_config_file("run.toml"));
//   apply_layer(config, {config_option("--steps", "100"), config_option("--nesterov", "true")});

#include <string>
#include <string_view>
#include <vector>

#include "tessera/config/config_keys.h"

namespace tessera {

struct ConfigAssignment {
  const ConfigKey* key = nullptr;
  ConfigValue value;
  std::string place;  // for errors: "run.toml:3:8: [train] steps" or "[--steps]"
};
using ConfigLayer = std::vector<ConfigAssignment>;

/// Tables [model] [data] [train] [optimiser] [schedule] [placement] [run], and those of domains
/// (domain_tables.h). Throws InvalidInput with
/// line and column; an unknown key or table is an error that names the known ones.
ConfigLayer parse_config(std::string_view toml, const std::string& file_name);
/// Throws InvalidInput where the file cannot be read.
ConfigLayer read_config_file(const std::string& path);

/// A value as the command line gives it. A flag's text is "true" or "false".
ConfigAssignment config_option(const std::string& option, const std::string& text);

/// Throws InvalidInput where two of the layer exclude each other, or give one key twice.
void apply_layer(TrainConfig& config, const ConfigLayer& layer);

}  // namespace tessera
