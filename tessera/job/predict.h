#pragma once
// A trained network applied to every image of a data set, with the results in files that all ranks
// write together, each its own boxes.
//
// Example:
//   predict(job, *data, {.weights = "run/weights.safetensors", .classes = "classes.npy"});

#include <string>

#include "tessera/data/dataset.h"
#include "tessera/job/job.h"

namespace tessera {

/// Paths; empty where a result is not wanted.
struct PredictRequest {
  std::string weights = {};  // safetensors file or checkpoint folder; empty: the model file's own
  std::string classes = {};  // class maps, N x space (.npy)
  std::string probabilities = {};  // N x classes x space (.npy)
  std::string raw = {};            // the first output as it is, N x channels x space (.npy)
};

/// Runs on the job's ranks (see run.h). Labels of the data set are not read. Throws InvalidInput
/// where there are no weights, or nothing is wanted.
void predict(const Job& job, const Dataset& data, const PredictRequest& request);

}  // namespace tessera
