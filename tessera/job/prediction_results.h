#pragma once
// What a prediction writes: class maps, probabilities and raw outputs, as far as they are wanted,
// each as a file for all samples or one for each.

#include <string>
#include <vector>

#include "tessera/data/dataset.h"
#include "tessera/job/predict.h"
#include "tessera/job/result_file.h"
#include "tessera/job/written_files.h"
#include "tessera/train/predictor.h"

namespace tessera {

/// Where the results of samples go, and with which frames. Their shape is channels x space.
struct ResultPlace {
  const PredictRequest& request;
  const Dataset& images;  // in the grid that the results have
  Shape shape;
  at::ScalarType real = at::kFloat;
};

/// `data` has one size of images; `job` is for it, or for the windows.
ResultPlace result_place(const Job& job, const AppliedData& data,
                         const std::vector<ImageWindow>& windows, const PredictRequest& request);

class PredictionResults {
 public:
  /// Collective over all ranks.
  PredictionResults(const ResultPlace& place, Transport& transport);

  ResultFiles& classes() { return kinds_[0]; }
  ResultFiles& probabilities() { return kinds_[1]; }
  ResultFiles& raw() { return kinds_[2]; }

  /// Collective: the first samples of a batch, as many as there are.
  void begin_batch(int64_t first, int64_t batch_size);
  void end_batch();
  void finish();

  /// `box` is batch x channels x space and counts the samples of the batch; those that only fill it
  /// up are left out. `class_maps` is batch x space, and undefined where none are written now.
  void write(Box box, const PredictedBox& predicted, const at::Tensor& class_maps);

 private:
  const int64_t num_samples_;
  std::vector<ResultFiles> kinds_;
  int64_t first_ = 0;
};

/// The file that the class map of a sample is written to.
std::string class_map_file(const ResultPlace& place, int64_t sample);

/// The files of all results that are wanted.
std::vector<WrittenFile> files_of_results(const ResultPlace& place);

}  // namespace tessera
