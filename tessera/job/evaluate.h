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
#include "tessera/data/dataset.h"
#include "tessera/train/surface_scores.h"
#include "tessera/train/validator.h"

namespace tessera {

struct EvaluateRequest {
  std::string weights = {};  // safetensors file or checkpoint folder; empty: the model file's own
  double tolerance = 1;      // of the surface Dice, in millimetres, or pixels where none are known
};

struct Evaluation {
  ScoredTask task = ScoredTask::kPixelClasses;
  int64_t samples = 0;
  ValidationResult result;
  std::vector<SurfaceScores> surfaces = {};  // of masks, per class
  std::string without_surfaces = {};         // why there are none, though these are masks
};

/// Runs on the ranks that `config` says, with images of any sizes. Throws InvalidInput where the
/// data has no targets or does not fit the network. The result is complete on rank 0's process.
Evaluation evaluate(const TrainConfig& config, const Dataset& data, const EvaluateRequest& request);

}  // namespace tessera
