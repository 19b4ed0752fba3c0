#pragma once
// Everything that `tessera train` can be told, with its defaults: what all commands know
// (job_config.h) and what training adds. A configuration is built in
// layers: these defaults, then a TOML file, then the command line (config_layer.h); resolved()
// fills in what depends on the rest and checks it all. Names, help and legal values of all keys are
// one table (config_keys.h), so that the file and the command line cannot differ.
//
// Example:
//   TrainConfig config;
//   apply_layer(config, read_config_file("run.toml"));
//   apply_layer(config, {config_option("--learning-rate", "0.1")});
//   config = resolved(config);

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/config/job_config.h"

namespace tessera {

struct TrainConfig : JobConfig {
  // [model]
  std::string init_weights;
  bool skip_mismatched = false;
  std::string freeze;
  std::string save_weights;

  // [data]
  std::string data;
  bool channels_last = false;        // in files: samples x space x channels
  std::string label_check = "all";   // or "sample", "none"
  std::string normalise;             // "z-score"; empty: numbers as they are
  std::string orientation = "file";  // or "ras"
  std::string spacing;               // "1x1x2.5", millimetres; empty: as in the files
  std::string crop;                  // "128x128"; empty: the network's size, where it must be
  std::string crop_centres = "uniform";
  double crop_fill = 0;  // of patches, beyond the image
  int64_t patches_per_image = 1;
  std::string augment;  // "flip+noise:std=0.1"
  double validation_fraction = 0.1;
  std::string fold;              // "2/5": the part that is validated on, instead of a fraction
  std::string validate_targets;  // "all", or "target1,target3": domains that are validated, too
  bool drop_last = false;

  // [train]
  std::optional<int64_t> epochs;  // none of these three: 10
  std::optional<int64_t> steps;
  std::string target_epochs;  // most passes over each target's data: "3", "3/5"; empty: any number
  int64_t accumulation = 1;
  double clip_norm = 0;  // 0: off
  std::string on_nan = "stop";
  int64_t patience = 0;  // 0: no early stopping
  double min_delta = 0;
  bool print_loss = false;
  std::string dump_gradients;
  int64_t check_serial = 0;  // steps between comparisons of multigrid with serial steps; 0: none
  double multigrid_residual = 0;  // of a step, above which V-cycles are added; 0: never
  double multigrid_error = 0;     // of a checked gradient, above which V-cycles are added; 0: never
  std::string monitor = "loss";
  double ema = 0;  // 0: off

  // [optimiser]
  std::string optimiser = "sgd";
  std::optional<double> learning_rate;  // none: 0.01 for sgd, 0.001 for the others
  std::optional<double> weight_decay;   // none: 0.01 for adamw, 0 for the others
  double momentum = 0.9;
  bool nesterov = false;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;

  // [schedule]
  std::string schedule = "constant";
  int64_t warmup_steps = 0;
  int64_t step_epochs = 10;
  std::optional<double> gamma;  // none: 0.95 for exponential, 0.1 for the others
  double power = 1;
  int64_t plateau_patience = 10;
  double plateau_threshold = 1e-4;
  double min_learning_rate = 0;
  double pct_start = 0.3;
  double div_factor = 25;
  double final_div_factor = 10'000;

  // [run]
  std::string folder;  // empty: a new one, runs/<model>-<date>-<n>
  std::string resume = "auto";
  int64_t checkpoint_interval = 0;  // 0: at the end of every epoch
  int64_t keep_checkpoints = 3;
  int64_t log_interval = 1;

  bool operator==(const TrainConfig&) const = default;
};

/// Fills in the defaults that depend on other keys. Throws InvalidInput, naming the option, where a
/// value is not legal or two do not fit together.
TrainConfig resolved(TrainConfig config);

/// Throws InvalidInput, naming the option, where a value is not legal.
void check_job_config(const JobConfig& config);

/// One object per table, for run.json; null where nothing is set.
std::string to_json(const TrainConfig& config);

/// What to_json() wrote. What an earlier version did not write has its default. Throws InvalidInput
/// for what no version could have written.
TrainConfig config_from_json(const std::string& json);

/// --save-weights: a file for the weights at the end, or "best" or "best:FILE" for those of the
/// best validation.
struct WeightsTarget {
  bool best = false;
  std::string path;  // empty: best.safetensors in the run's folder
};
WeightsTarget weights_target(const std::string& save_weights);

/// Which keys that change a run's numbers (ConfigEffect) were different in `before`, a text of
/// to_json(): "--learning-rate was 0.01, is 0.1". What an earlier version did not write counts as
/// the default, and a text that is not a configuration has no differences.
std::vector<std::string> changed_settings(const std::string& before, const TrainConfig& now);

}  // namespace tessera
