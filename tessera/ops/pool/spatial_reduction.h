#pragma once
// Sums and means over spatial axes: the squeeze of squeeze-and-excitation, global average pooling,
// the pooled rows and columns of coordinate attention.
//
// Over all of space it exists in graphs and in the reference path only. One output needs the whole
// image then, so the lowering rewrites it before it places anything: to PartialSum on each piece
// and SumParts (partial.h), which move one number per channel and piece. Over some of the axes it
// is an operator like others, which reads whole lines of the image.
//
// Example:
//   ValueId pooled = spatial_reduction(graph, x, "squeeze", {});               // [N, C, 1, 1]
//   ValueId rows = spatial_reduction(graph, x, "rows", {.axes = {1}});         // [N, C, H, 1]

#include <optional>
#include <string>
#include <vector>

#include "tessera/graph/graph.h"

namespace tessera {

struct SpatialReductionOptions {
  enum class How { kSum, kMean };

  How how = How::kMean;
  std::vector<int> axes = {};  // among the spatial ones, from 0; empty: all
  bool keep_axes = true;       // with size 1. Else the result has no space: all must be reduced
};

ValueId spatial_reduction(Graph& graph, ValueId x, const std::string& name,
                          const SpatialReductionOptions& options);

/// What the sum over all of space is multiplied by, where `op` is a reduction over all of it.
std::optional<double> whole_space_scale(const Op& op, const NodeTypes& types);

}  // namespace tessera
