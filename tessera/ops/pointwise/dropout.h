#pragma once
// Dropout: an element is zeroed with the given probability, the others are scaled by 1 / (1 - p).
// Whole channels (Dropout2d), whole samples (stochastic depth) or all of the batch may share one
// draw. The mask is a function of (seed, node name, step, global index of what shares the draw), so
// that it is the same on every placement, and it is drawn again in backward instead of being kept.
// Networks for inference are built without it.

#include <string>

#include "tessera/graph/graph.h"

namespace tessera {

struct DropoutOptions {
  /// What shares one draw.
  enum class Unit { kElement, kChannel, kSample, kBatch };
  /// Alpha dropout is for networks with SELU: what is dropped becomes SELU's lower limit, and all
  /// is scaled and shifted so that mean and variance stay.
  enum class Form { kZeros, kAlpha };

  double probability = 0.5;  // of dropping, in [0, 1]
  Unit unit = Unit::kElement;
  Form form = Form::kZeros;
  double scale = 0;  // of what is kept, with zeros for the rest; 0: 1 / (1 - p)
};

ValueId dropout(Graph& graph, ValueId x, const std::string& name, const DropoutOptions& options);

}  // namespace tessera
