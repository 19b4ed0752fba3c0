#pragma once
// Whole class maps of predictions on rank 0, for what looks at a map as a whole: distances between
// surfaces, connected components. This is for maps of a limited size; all else works on boxes.
//
// Example, on every rank:
//   LabelMaps maps({2, 512, 512}, transport);   // of a batch of two
//   predictor.run_batch(data, batch, {},
//       [&](int64_t, const Box&, const PredictedBox& part) { maps.add(classes_of_logits(part.raw));
//       },
//       [&](const std::vector<Piece>& kept) { maps.collect(kept); });

#include <functional>

#include "tessera/train/predictor.h"

namespace tessera {

/// The largest map that is held whole: 8192 x 8192 pixels, or 400 x 400 x 400.
constexpr int64_t kMostLabelsHeld = int64_t{1} << 26;

/// Takes the classes of a sample, int64 in the shape of the output's space. On rank 0 only.
using TakeLabelMap = std::function<void(int64_t sample, const at::Tensor& classes)>;

class LabelMaps {
 public:
  /// `shape` is batch x space.
  LabelMaps(const Shape& shape, Transport& transport);

  /// The classes of this rank's next box, in the order in which the predictor gives them.
  void add(at::Tensor classes) { own_.push_back(std::move(classes)); }
  /// Collective: sends what was added to rank 0. `kept` are the boxes of all ranks (batch x
  /// channels x space) since the last call. Point-to-point: every box once.
  void collect(const std::vector<Piece>& kept);
  /// Of one entry of the batch. On rank 0 only.
  at::Tensor of(int64_t entry) const { return maps_[entry]; }

 private:
  const Shape shape_;
  Transport& transport_;
  at::Tensor maps_;
  std::vector<at::Tensor> own_;
};

}  // namespace tessera
