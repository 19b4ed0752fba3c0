#pragma once
// Layer normalisation in its two forms. Over channels, every pixel has statistics of its own: the
// channels-last layer norm of ConvNeXt, and the plain one of batch x features; nothing is exchanged
// between pieces. Over the sample, statistics are those of all channels and all of space, and every
// element has its own weight.
//
// Example:
//   ValueId y = layer_norm(graph, x, "stages.0.0.norm", {.epsilon = 1e-6});

#include <string>

#include "tessera/graph/graph.h"

namespace tessera {

struct LayerNormOptions {
  enum class Over {
    kChannels,  // F.layer_norm(x, [C]) with the channels last
    kSample,    // F.layer_norm(x, [C, space...])
  };

  Over over = Over::kChannels;
  double epsilon = 1e-5;
  bool affine = true;  // has a weight and a bias
};

/// Parameters name.weight and name.bias where affine, of shape C, or C x space over the sample.
/// Statistics must be of more than one value.
ValueId layer_norm(Graph& graph, ValueId x, const std::string& name,
                   const LayerNormOptions& options = {});

}  // namespace tessera
