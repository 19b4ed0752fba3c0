#pragma once
// The weights with which a trained network is applied: of a file, of a checkpoint, or of a run's
// best or last checkpoint.

#include <string>
#include <vector>

#include "tessera/job/model_source.h"

namespace tessera {

/// The path of the weights that a user names: "best" and "last" are checkpoints of the run in
/// `run`, and an empty text is its best one, or its last where no validation has judged. A path
/// stays as it is, and so does all else where `run` is empty. Throws InvalidInput where the run has
/// none.
std::string chosen_weights(const std::string& text, const std::string& run);

/// From a safetensors file or a checkpoint folder of `tessera train`, into the values that this
/// rank holds. An empty path leaves them: a model file brings its own.
void load_applied_weights(const std::string& path, const LoadedModel& model,
                          std::vector<at::Tensor>& values);

}  // namespace tessera
