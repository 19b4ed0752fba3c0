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

struct UnetSizes {
  int64_t base = 0;
  int64_t depth = 0;
  NormChoice norm = {};
};
/// From the options base, depth, norm and groups.
UnetSizes read_unet_sizes(const ModelOptions& options);

/// What the way down leaves: the bottleneck, and the skip of each level above it.
struct UnetCode {
  ValueId bottom = -1;
  std::vector<ValueId> skips = {};
};

/// The way down, with `prefix` before its names.
UnetCode descend_unet(Graph& graph, ValueId x, const std::string& prefix, const UnetSizes& sizes,
                      Border border = Border::kSame);

/// The way up from `bottom`, without skips: they only say how large each level is.
ValueId ascend_without_skips(Graph& graph, const UnetCode& code, const std::string& prefix,
                             const UnetSizes& sizes);

/// What becomes of a level's skip before the decoder reads it; `below` is what comes up from the
/// next level, at half the size.
using SkipFilter = std::function<ValueId(Graph& graph, ValueId skip, ValueId below, int64_t level)>;

/// The way up with skips; without a filter they are read as they are. An upsampled map is padded
/// with zeros to the size of its skip.
ValueId ascend_unet(Graph& graph, const UnetCode& code, const std::string& prefix,
                    const UnetSizes& sizes, Border border = Border::kSame,
                    const SkipFilter& filter = {});

/// The training graph, from the options base, depth, classes, norm and groups. Skips are read
/// as by ascend_unet.
Graph build_unet(const ModelOptions& options, const Shape& input, Border border,
                 const SkipFilter& filter = {});

/// Throws InvalidInput where a spatial size is too small for the levels of a U-Net with same
/// padding.
void check_unet_sizes(const std::string& model, const ModelOptions& options, const Shape& input);

}  // namespace tessera
