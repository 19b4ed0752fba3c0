#pragma once
// Each pixel's channels as a vector of length 1: x / max(|x|, epsilon), as torch's normalize along
// the channels. Rows are samples of batch x features, and pixels of images.
//
// Example:
//   ValueId directions = row_norm(graph, code, "direction");

#include <string>

#include "tessera/graph/graph.h"

namespace tessera {

/// Vectors shorter than epsilon are divided by it, so that their gradients stay finite.
struct RowNormOptions {
  double epsilon = 1e-6;  // above 0
};

ValueId row_norm(Graph& graph, ValueId x, const std::string& name,
                 const RowNormOptions& options = {});

}  // namespace tessera
