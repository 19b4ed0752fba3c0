#pragma once
// A trained network applied to every image of a data set, with the results in files that all ranks
// write together, each its own boxes.
//
// Example:
//   predict(job, *data, {.weights = "run/weights.safetensors", .classes = "classes.npy"});

#include <string>
#include <vector>

#include "tessera/data/dataset.h"
#include "tessera/job/applied_data.h"
#include "tessera/job/job.h"
#include "tessera/job/written_files.h"

namespace tessera {

/// Paths of results name a file for all samples or, with a slash at the end, a folder with a file
/// for each (result_file.h); empty where a result is not wanted.
struct PredictRequest {
  std::string weights = {};  // safetensors file or checkpoint folder; empty: the model file's own
  std::string classes = {};  // class maps, N x space
  std::string probabilities = {};  // N x classes x space
  std::string raw = {};            // the first output as it is, N x channels x space
  std::string ending = {};         // of the files in a folder; empty: as result_ending() says
  bool flips = false;              // means over the image and its mirror images
  /// Classes of which only the largest connected component is kept in class maps: "all" but the
  /// first, or numbers with commas between them; empty: none.
  std::string largest_component = {};
  Shape window = {};  // the largest part of an image seen at once; empty: as memory has it
  /// What the caller will write beside the results: no file of the data, and none of the results.
  std::vector<WrittenFile> drawings = {};
};

/// One size of images, that of the job. Runs on the job's ranks (see run.h). Labels of the data set
/// are not read. Throws InvalidInput where there are no weights, or nothing is wanted.
void predict(const Job& job, const Dataset& data, const PredictRequest& request);

/// Images of any sizes: for each, the network is made again for that size, on the same placement.
/// An image that does not fit into memory is seen by windows (windows.h), which changes no number.
/// Results have the grid of the images' own files (image_predictor.h).
void predict(const JobConfig& config, const AppliedData& data, const PredictRequest& request);
void predict(const JobConfig& config, const Dataset& data, const PredictRequest& request);

}  // namespace tessera
