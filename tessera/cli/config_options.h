#pragma once
// The options of a command that are keys of the configuration (config/config_keys.h), and --config.
// A command adds those that it knows, and gets a configuration back: the defaults, then the file,
// then the command line.

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tessera/config/train_config.h"

namespace tessera::cli {

class ConfigOptions {
 public:
  /// Keys that all commands know, or those of training, too. Lives as long as the command.
  enum class Keys { kJob, kTraining };
  void add_to(CLI::App& command, Keys keys);

  /// Throws InvalidInput, naming option or file and line, for what is not legal. Not yet
  /// resolved().
  TrainConfig read() const;

 private:
  std::string config_file_;
  std::vector<std::pair<std::string, std::string>> given_;  // option, text
};

}  // namespace tessera::cli
