#pragma once
// The scores of a trained network on data with targets: the same that validation gives during
// training, to the last digit, and for masks how far outlines are apart.
//
// Example:
//   const Evaluation evaluation = evaluate(run_config("runs/lung"), *data, {.weights = path});
//   evaluation.result.scores.dice[2];

#include <string>
#include <vector>

#include "tessera/config/train_config.h"
#include "tessera/job/applied_data.h"
#include "tessera/job/job.h"
#include "tessera/train/surface_scores.h"
#include "tessera/train/validator.h"

namespace tessera {

struct EvaluateRequest {
  std::string weights = {};  // safetensors file or checkpoint folder; empty: the model file's own
  double tolerance = 1;      // of the surface Dice, in millimetres, or pixels where none are known
  Shape window = {};         // the largest part of an image seen at once; empty: as memory has it
  /// For outputs on their way to the images' own grid; all ranks see it. Empty: the system's folder
  /// for temporary files.
  std::string scratch_folder = {};
};

struct Evaluation {
  ScoredTask task = ScoredTask::kPixelClasses;
  int64_t samples = 0;
  ValidationResult result;
  std::vector<SurfaceScores> surfaces = {};  // of masks, per class
  std::string without_surfaces = {};         // why there are none, though these are masks
  std::string without_loss = {};             // why there is none
  /// Scores are those of the images' own grid, while the loss is of the grid that is seen.
  bool came_back = false;
  std::vector<std::string> class_names = {};  // empty where the data does not say
};

/// Runs on the ranks and devices of `job`, which `config` resolves to, with images of any sizes:
/// for others than its own the network is made again from `config`. Masks are scored in the grid of
/// the images' own files. Images that do not fit into memory with their loss have scores alone, by
/// windows (windows.h) where that is necessary. Throws InvalidInput where the data has no targets
/// or does not fit the network. The result is complete on rank 0's process.
Evaluation evaluate(const Job& job, const TrainConfig& config, const AppliedData& data,
                    const EvaluateRequest& request);
/// The same with the job that `config` resolves to.
Evaluation evaluate(const TrainConfig& config, const AppliedData& data,
                    const EvaluateRequest& request);
Evaluation evaluate(const TrainConfig& config, const Dataset& data, const EvaluateRequest& request);

}  // namespace tessera
