#pragma once
// Rearrangements between channels and pixels, for two spatial axes as in PyTorch: pixel_shuffle
// makes an image `factor` times as large from factor^2 channels for each of its own (sub-pixel
// convolution, super-resolution), pixel_unshuffle is its inverse. channel_shuffle mixes the groups
// of grouped convolutions (ShuffleNet). Pieces need not lie on multiples of the factor.

#include <cstdint>
#include <string>

#include "tessera/graph/graph.h"
#include "tessera/ops/shape/arrangement.h"

namespace tessera {

/// N x C*factor^2 x H x W to N x C x H*factor x W*factor.
ValueId pixel_shuffle(Graph& graph, ValueId x, const std::string& name, int64_t factor);

/// N x C x H*factor x W*factor to N x C*factor^2 x H x W.
ValueId pixel_unshuffle(Graph& graph, ValueId x, const std::string& name, int64_t factor);

/// Channel g * (C / groups) + j goes to j * groups + g. Any number of spatial axes, or none.
ValueId channel_shuffle(Graph& graph, ValueId x, const std::string& name, int64_t groups);

// What they do to the axes of an image; `name` is for messages. All throw InvalidInput where the
// shape does not fit.

Arrangement pixel_shuffle_of(const Shape& image, const std::string& name, int64_t factor);
Arrangement pixel_unshuffle_of(const Shape& image, const std::string& name, int64_t factor);
Arrangement channel_shuffle_of(const Shape& image, const std::string& name, int64_t groups);

}  // namespace tessera
