#pragma once
// Small networks of the sorts that reports and drawings must get right.

#include "tessera/graph/graph.h"

namespace tessera {

/// An image of `shape` alone.
Graph image_graph(const Shape& shape);

/// Blocks of convolutions 3x3 and a pooling 2x2, then a linear head and a loss.
Graph vgg_graph(const Shape& shape, const std::vector<int>& convolutions_per_block);

/// Residual blocks of two convolutions, or one and a projection where the resolution changes;
/// `blocks_per_stage` in each of three stages.
Graph residual_graph(const Shape& shape, int blocks_per_stage);

/// Every layer reads the outputs of all layers before it.
Graph dense_graph(const Shape& shape, int num_layers);

/// Modules of four branches of different lengths, joined by concat.
Graph inception_graph(const Shape& shape, int num_modules);

}  // namespace tessera
