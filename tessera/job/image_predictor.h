#pragma once
// A network that is applied to images, batch by batch, with results in the grid of their own files.
//
// Where the network sees images as they are, each rank gives the boxes that it has computed. Where
// they were turned or resampled for it, results come back:
//
//   outputs, in the grid that is seen  ──►  a scratch file  ──►  strips of the image's own grid
//   each rank its own boxes                 no rank holds it     by linear interpolation, in turns
//
// Every pixel of the result is a function of the outputs around it alone, so that the result does
// not depend on the ranks, and memory is that of a strip. The scratch file has no name of its own
// and goes with the batch.

#include <functional>
#include <string>
#include <vector>

#include "tessera/augment/own_grid.h"
#include "tessera/job/applied_data.h"
#include "tessera/job/job.h"
#include "tessera/train/label_maps.h"
#include "tessera/train/predictor.h"

namespace tessera {

struct PredictionWish {
  std::vector<ImageWindow> windows = {};  // none: images are seen whole
  bool flips = false;
  bool raw = false;
  bool probabilities = false;
  bool classes = false;
  /// Beside this path scratch files lie, on a disk that all ranks see.
  std::string scratch = {};
};

/// Channels x space of one sample's result. `data` has one size of images.
Shape result_shape(const Job& job, const AppliedData& data,
                   const std::vector<ImageWindow>& windows);

class ImagePredictor {
 public:
  /// All but the wish outlive it.
  ImagePredictor(const Job& job, const Lowering& lowering, const AppliedData& data,
                 PredictionWish wish, ParameterStore* parameters, Transport* transport);

  int64_t batch_size() const { return predictor_.batch_size(); }
  int64_t num_batches() const { return predictor_.num_batches(*data_.seen); }

  /// Collective over all ranks. `take` gets boxes of batch x channels x space of the result. What
  /// was not wished for may be undefined there; samples that only fill up the batch may be left
  /// out.
  void run_batch(int64_t batch, const TakePrediction& take, const AfterWindow& after_window = {});
  /// The same, and rank 0 gets the whole class maps of the batch's samples.
  void run_batch_with_maps(int64_t batch, const TakePrediction& take, const TakeLabelMap& take_map);

  /// By the numbers that classes are decided by: means over mirror images, and what comes back to
  /// another grid, are probabilities.
  at::Tensor classes_of(const PredictedBox& predicted) const;

 private:
  bool by_probabilities() const { return wish_.flips || comes_back_; }
  int64_t samples_in(int64_t batch) const;
  PredictOptions options() const;
  void bring_back(int64_t batch, const TakePrediction& take, const AfterWindow& after_window);
  std::vector<Piece> shares_of(int64_t entry, const std::vector<OwnAxis>& axes) const;

  const Job& job_;
  const AppliedData& data_;
  const PredictionWish wish_;
  Transport& transport_;
  const bool comes_back_;
  const Shape shape_;
  Predictor predictor_;
};

}  // namespace tessera
