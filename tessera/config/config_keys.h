#pragma once
// The one table of everything that a command can be told: each key's place in the TOML file, its
// command-line option, its help, its legal values, and how it is read from and written to a
// TrainConfig. The file's reader, the command lines, --help and run.json all walk this table.
//
// Example:
//   for (const ConfigKey& key : config_keys())
//     command.add_option(key.option, ..., key.help)->group(key.table);

#include <functional>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "tessera/config/train_config.h"

namespace tessera {

/// None: the key is not set.
using ConfigValue = std::variant<std::monostate, bool, int64_t, double, std::string>;

enum class ConfigType {
  kText,
  kSizes,  // "2x3"; in a file also [2, 3] or 2
  kGrids,  // kSizes, or several: "2x3,1x1"; in a file also ["2x3", "1x1"]
  kWhole,
  kReal,
  kFlag,
};

struct ConfigInterval {
  enum class End { kOpen, kClosed };
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  End low_end = End::kClosed;
  End high_end = End::kOpen;

  bool contains(double value) const;
};
/// "at least 1", "in [0, 1)", "above 0".
std::string to_string(const ConfigInterval& interval);

/// Who knows a key: every command that runs a network, or training alone. The struct in which its
/// member stands says it: JobConfig or TrainConfig.
enum class ConfigScope { kJob, kTraining };

/// What a key changes about a run. A run is continued only with the settings that give its numbers;
/// the others may change from start to start.
enum class ConfigEffect {
  kNumbers,            // what is trained, on which data, and how
  kMicroBatchNumbers,  // the same, where batch norm goes by micro-batches
  kConduct,            // where it runs, how long, what is checked, kept and shown
};

struct ConfigKey {
  ConfigScope scope = ConfigScope::kTraining;
  std::string table;   // "optimiser"
  std::string name;    // "momentum"
  std::string option;  // "--momentum"; "MODEL" is positional
  std::string help;    // with unit
  ConfigType type = ConfigType::kText;
  ConfigInterval interval = {};  // of numbers
  ConfigEffect effect = ConfigEffect::kNumbers;
  std::vector<std::string> choices = {};   // of texts; none: any
  std::vector<std::string> excludes = {};  // options that this one replaces, and that replace it
  std::vector<std::string> aliases = {};   // other options with the same meaning, as in PyTorch
  // Earlier names, which still work where nothing else has them; help does not show them.
  std::string old_option = {};
  std::string old_name = {};
  std::function<ConfigValue(const TrainConfig&)> get;
  std::function<void(TrainConfig&, const ConfigValue&)> set;  // of a value that check() has passed
};

/// In the order in which help and run.json show them; tables are together.
const std::vector<ConfigKey>& config_keys();
/// Whether the key is called so in a file: by its name, an alias or its earlier name.
bool is_called(const ConfigKey& key, const std::string& name);
/// Throws InternalError where there is none.
const ConfigKey& config_key(const std::string& option);

/// Throws InvalidInput, with `place` in front, where the value is not of the key's type or not
/// legal.
void check(const ConfigKey& key, const ConfigValue& value, const std::string& place);

}  // namespace tessera
