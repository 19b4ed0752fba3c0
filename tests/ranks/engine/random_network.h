#pragma once
// Small random networks and placements, as functions of a seed: every operator, with random
// strides, dilations, paddings, even kernels, skips, and several consumers of one value with
// different windows.

#include <string>

#include "tessera/graph/graph.h"
#include "tessera/plan/plan.h"

namespace tessera {

struct RandomCase {
  Graph graph;
  Plan plan;
  std::string description;  // the operators and the placement, for the report
};

RandomCase random_case(uint64_t seed);

}  // namespace tessera
