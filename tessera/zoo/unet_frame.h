#pragma once
// What the U-Nets share (Ronneberger, Fischer, Brox, "U-Net: Convolutional Networks for Biomedical
// Image Segmentation", 2015): levels of two convolutions each, down by max pooling, up by
// transposed convolutions, and skips from each level's way down to its way up.
//
//   enc1 ───────────── skip ──────────────► dec1 ── head
//     pool1 ╲                           ╱ up1
//           enc2 ───── skip ────► dec2
//             pool2 ╲         ╱ up2
//                   bottleneck

#include <functional>
#include <string>
#include <vector>

#include "tessera/zoo/blocks.h"
#include "tessera/zoo/typed_options.h"

namespace tessera {

inline constexpr IntegerOption kUnetBase{
    "base", "channels of the first level, doubled by each next", 1, 4096};
inline constexpr IntegerOption kUnetDepth{"depth", "number of levels, the bottleneck among them", 2,
                                          12};

/// What becomes of a level's skip before the decoder reads it; `below` is what comes up from the
/// next level, at half the size.
using SkipFilter = std::function<ValueId(Graph& graph, ValueId skip, ValueId below, int64_t level)>;

/// The training graph, from the options base, depth, classes, norm and groups. Without a filter
/// skips are read as they are. An upsampled map is padded with zeros to the size of its skip.
Graph build_unet(const ModelOptions& options, const Shape& input, Border border,
                 const SkipFilter& filter = {});

/// Throws InvalidInput where a spatial size is too small for the levels of a U-Net with same
/// padding.
void check_unet_sizes(const std::string& model, const ModelOptions& options, const Shape& input);

}  // namespace tessera
