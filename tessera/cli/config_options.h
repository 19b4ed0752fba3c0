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

  /// The same where MODEL may be the folder of a run: what the run was told lies below the file and
  /// the command line.
  struct OfRun {
    TrainConfig config;
    std::string run;  // empty: MODEL is a model
  };
  OfRun read_of_run() const;

 private:
  using Given = std::vector<std::pair<std::string, std::string>>;  // option, text
  TrainConfig read_over(TrainConfig config, const Given& given, const std::string& run) const;
  bool knows(const ConfigKey& key) const;
  std::string text_of(const std::string& option, const TrainConfig& config) const;

  CLI::App* command_ = nullptr;
  Keys keys_ = Keys::kJob;
  std::string config_file_;
  Given given_;
};

}  // namespace tessera::cli
