#pragma once
// What an operator reads beyond its own part: when its output and its inputs are cut in two at the
// same place in the middle, how many pixels of the other half does a half of the output need? A 3x3
// convolution needs one on each side, a 2x2 pooling none, global pooling all:
//
//   output      [   first half   |   second half   ]
//   3x3 reads   [ ................ + ]                  high 1
//   3x3 reads                  [ + ................ ]   low 1
//
// This is a property of the operator alone. What a placement exchanges, and how many bytes that is,
// is in lower/halo_report.h.

#include <cstdint>
#include <vector>

#include "tessera/graph/graph.h"

namespace tessera {

/// Along one spatial axis, in pixels of the input; of several inputs the widest.
struct HaloAxis {
  int64_t low = 0;     // before its part
  int64_t high = 0;    // after it
  bool whole = false;  // half the output reads the whole axis
  bool operator==(const HaloAxis&) const = default;
};

/// One entry per spatial axis of the inputs, none where no input has space.
std::vector<HaloAxis> operator_halo(const Node& node);

}  // namespace tessera
