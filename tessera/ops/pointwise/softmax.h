#pragma once
// Softmax over the channels of each pixel, or its logarithm. Backward reads the output alone, so
// the input need not be kept. A network that ends in a loss does not need it: cross_entropy takes
// logits.

#include <cstdint>
#include <string>

#include "tessera/graph/graph.h"
#include "tessera/kernels/softmax.h"

namespace tessera {

struct SoftmaxOptions {
  using Form = SoftmaxForm;

  Form form = Form::kSoftmax;
  int64_t groups = 1;  // of channels next to each other, each with a softmax of its own
};

/// Takes batch x channels, with or without space. The operator's kind is "softmax" or
/// "log_softmax".
ValueId softmax(Graph& graph, ValueId x, const std::string& name,
                const SoftmaxOptions& options = {});

}  // namespace tessera
