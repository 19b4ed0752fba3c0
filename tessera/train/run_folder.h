#pragma once
// The folder of a run: what was asked for, by which program, on which machine (`run.json`), and
// what came of it (`metrics.csv`, checkpoints, weights). A run can be understood and repeated from
// it.
//
// Rank 0 alone makes and writes it. Errors say the path, the system's reason and the remedy.
//
// Example:
//   RunFolder folder("runs/lung");
//   folder.write_description({.config_json = to_json(config), .placement_json = to_json(plan)});
//   MetricsFile metrics(folder.file("metrics.csv"), {"loss", "lr"}, std::nullopt);

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "tessera/augment/intensities.h"
#include "tessera/checkpoint/training_state.h"
#include "tessera/config/train_config.h"

namespace tessera {

struct RunDescription {
  std::string config_json;     // the resolved configuration
  std::string placement_json;  // the plan
  int num_ranks = 1;
  std::string transport;    // "threads" or "mpi"
  std::string device = {};  // of rank 0: "cpu", "cuda:0 (NVIDIA H200)"
  uint64_t seed = 0;
  std::optional<int64_t> resumed_at;  // step, where this start continues the folder's run
  std::string intensities_json = {};  // what became of the images' numbers; empty: nothing is said
};

class RunFolder {
 public:
  /// Makes the folder with its parents where it is missing. Writes nothing into it, for another run
  /// may have it. Throws InvalidInput.
  explicit RunFolder(const std::string& path);

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const;
  /// Whether a run was described here before.
  bool holds_run() const;

  /// Writes run.json, whole or not at all. A start that resumes keeps what the first start wrote
  /// under "first_start", and adds itself to the list "resumed".
  void write_description(const RunDescription& description) const;

 private:
  std::string path_;
};

/// Whether a run was described in a folder.
bool is_run_folder(const std::string& path);

/// The configuration of the run in a folder. Throws InvalidInput where run.json does not hold one.
TrainConfig config_of_run(const std::string& folder);

/// How the run brought the numbers of its images to one range; as they are where it does not say.
Intensities intensities_of_run(const std::string& folder);

/// The folder of a run's checkpoints.
std::string checkpoints_of_run(const std::string& folder);

/// Makes a folder for a new run and returns its path: runs/<model>-<date>-<n>, the first n from 1
/// that nobody has, whoever else asks at the same time. Of a model file the name without its ending
/// counts, of a zoo model the one without its options.
std::string new_run_folder(const std::string& model);

/// Throws InvalidInput with the differences where a checkpoint of the run in `folder` was made with
/// settings that give other numbers than `config`.
void check_same_settings(const std::string& folder, const TrainingState& checkpoint,
                         const TrainConfig& config);

/// Calls `write`, which writes a file of a run, and adds to the error of a failed write what the
/// user of a run can do.
void write_in_run(const std::function<void()>& write);

}  // namespace tessera
