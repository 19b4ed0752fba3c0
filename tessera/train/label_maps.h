#pragma once
// Whole class maps of predictions on rank 0, for what looks at a map as a whole: distances between
// surfaces, connected components. This is for maps of a limited size; all else works on boxes.
//
// Example, on every rank:
//   LabelMaps maps({512, 512}, transport);
//   predictor.run_batch(
//       data, batch, {},
//       [&](int64_t, const Box&, const PredictedBox& part) { maps.add(classes_of_logits(part.raw));
//       },
//       [&](const std::vector<Piece>& kept) { maps.note_window(kept); });
//   const at::Tensor first = maps.collect(0);

#include <functional>

#include "tessera/train/predictor.h"

namespace tessera {

/// The largest map that is held whole: 8192 x 8192 pixels, or 400 x 400 x 400.
constexpr int64_t kMostLabelsHeld = int64_t{1} << 26;

/// Takes the classes of a sample, int64 in the shape of the output's space. On rank 0 only.
using TakeLabelMap = std::function<void(int64_t sample, const at::Tensor& classes)>;

/// Every rank keeps the classes of its own boxes, and rank 0 holds one whole map at a time.
class LabelMaps {
 public:
  /// `space` is that of one map.
  LabelMaps(Shape space, Transport& transport);

  /// The classes of this rank's next box, in the order in which the predictor gives them.
  void add(const at::Tensor& classes);
  /// `kept` are the boxes of all ranks (batch x channels x space) since the last call.
  void note_window(const std::vector<Piece>& kept);
  /// The map of one entry of the batch; undefined on all ranks but the first. Collective over all
  /// ranks. Point-to-point: a message to rank 0 for each piece of the entry in each window.
  at::Tensor collect(int64_t entry) const;

 private:
  /// The classes of a box of the batch.
  struct KeptClasses {
    Box box;  // batch x space
    int rank = 0;
    at::ScalarType type = at::kLong;
    at::Tensor own;  // undefined where another rank has them
  };

  const Shape space_;
  Transport& transport_;
  std::vector<at::Tensor> added_;  // in the window that is under way
  std::vector<KeptClasses> kept_;
};

}  // namespace tessera
