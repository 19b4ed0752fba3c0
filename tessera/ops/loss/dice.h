#pragma once
// Dice loss (Milletari et al., "V-Net", 2016): one minus the overlap of prediction and target,
// relative to their sizes, so that small classes count as much as large ones. With p the activated
// scores and t the target, and sums over the pixels of a class,
//
//   loss = 1 - mean of (2 sum(p t) + smooth) / (sum(p) + sum(t) + smooth)
//
// where the mean goes over samples and classes (kSample, as MONAI's DiceLoss) or, with sums over
// the whole batch, over classes (kBatch). The sums are statistics over all pieces; a piece adds a
// share of the loss in proportion to its pixels.
//
// Targets are real numbers of the scores' shape, or labels: 0 or 1 for a single channel, the class
// for several. Pixels whose label is ignored are left out of all sums, and a sample without other
// pixels is left out of the mean.
//
// Example:
//   dice(graph, logits, target, "loss", {.activation = DiceOptions::Activation::kSoftmax});

#include <cstdint>
#include <string>

#include "tessera/kernels/loss.h"
#include "tessera/ops/loss/loss_target.h"

namespace tessera {

struct DiceOptions {
  using Activation = DiceTerms::Activation;
  enum class Average { kSample, kBatch };

  Activation activation = Activation::kSigmoid;
  double smooth = 1e-5;              // at least 0; 0 makes an empty class NaN
  bool squared_denominator = false;  // sum(p²) + sum(t²) instead
  Average average = Average::kSample;
  bool include_background = true;  // false leaves channel 0 out
  int64_t ignore_index = -100;     // labels only
  double weight = 1;               // factor on the loss
};

ValueId dice(Graph& graph, ValueId logits, ValueId target, const std::string& name,
             const DiceOptions& options = {});

}  // namespace tessera
