#pragma once
// The options of a command that are keys of the configuration (config/config_keys.h), and --config.
// A command adds those that it knows, and gets a configuration back: the defaults, then the file,
// then the command line.

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tessera/config/config_keys.h"

namespace tessera::cli {

class ConfigOptions {
 public:
  /// Keys that all commands know, or those of training, too, or only those about images. Lives as
  /// long as the command.
  enum class Keys { kJob, kTraining, kData };
  void add_to(CLI::App& command, Keys keys);

  /// Throws InvalidInput, naming option or file and line, for what is not legal, and where the
  /// command would write a file twice or over one that it reads (file_options.h). Not yet
  /// resolved().
  TrainConfig read() const;

 private:
  bool knows(const ConfigKey& key) const;
  std::string text_of(const std::string& option, const TrainConfig& config) const;

  CLI::App* command_ = nullptr;
  Keys keys_ = Keys::kJob;
  std::string config_file_;
  std::vector<std::pair<std::string, std::string>> given_;  // option, text
};

}  // namespace tessera::cli
