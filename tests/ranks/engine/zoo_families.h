#pragma once
// The models of the zoo with options that make them small, and grids that suit them.

#include <string>
#include <vector>

#include "tessera/graph/graph.h"

namespace tessera {

using Grids = std::vector<std::vector<int64_t>>;

struct ZooFamily {
  std::string model;
  Shape input;
  Grids grids;
  std::vector<int64_t> pieces;
  int64_t steps = 2;
};

/// Our own models, on many grids.
std::vector<ZooFamily> small_models();

/// The published classifiers at all their depth and little width, on few grids. In the deepest with
/// batch norm, gradients are so large beside the weights that the rounding of a first update shows
/// in the second step, on one worker as on many: they do one.
std::vector<ZooFamily> published_models();

}  // namespace tessera
