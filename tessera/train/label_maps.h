#pragma once
// Whole class maps of predictions on rank 0, for what looks at a map as a whole: distances between
// surfaces, connected components. This is for maps of a limited size; all else works on boxes.

#include <functional>

#include "tessera/train/predictor.h"

namespace tessera {

/// The largest map that is held whole: 8192 x 8192 pixels, or 400 x 400 x 400.
constexpr int64_t kMostLabelsHeld = int64_t{1} << 26;

/// Takes the classes of a sample, int64 in the shape of the output's space. On rank 0 only.
using TakeLabelMap = std::function<void(int64_t sample, const at::Tensor& classes)>;

/// Collective over all ranks: predicts one batch, gives `boxes` what each rank has, and rank 0 the
/// maps of the batch's samples. Point-to-point: every piece of every window once to rank 0.
void predict_label_maps(Predictor& predictor, const Dataset& data, int64_t batch,
                        const PredictOptions& options, const Shape& output_space,
                        const TakePrediction& boxes, const TakeLabelMap& take);

}  // namespace tessera
