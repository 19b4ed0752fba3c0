#include "tessera/zoo/unet_frame.h"

#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/conv/transposed_convolution.h"
#include "tessera/ops/shape/concat.h"

namespace tessera {
namespace {

/// From the level below to level `level`, which is as large as `like`.
ValueId enlarge(Graph& graph, ValueId x, ValueId like, const std::string& name, int64_t channels) {
  x = transposed_convolution(graph, x, name,
                             {.out_channels = channels, .kernel = {2}, .stride = {2}});
  return fit_to(graph, x, like, name + ".pad");
}

int64_t channels_of(const UnetSizes& sizes, int64_t level) { return sizes.base << (level - 1); }

}  // namespace

UnetSizes read_unet_sizes(const ModelOptions& options) {
  return {kUnetBase.read(options), kUnetDepth.read(options), read_any_norm(options)};
}

UnetCode descend_unet(Graph& graph, ValueId x, const std::string& prefix, const UnetSizes& sizes,
                      Border border) {
  UnetCode code;
  for (int64_t level = 1; level < sizes.depth; ++level) {
    code.skips.push_back(two_convolutions(graph, x, fmt::format("{}enc{}", prefix, level),
                                          channels_of(sizes, level), sizes.norm, border));
    x = halve(graph, code.skips.back(), fmt::format("{}pool{}", prefix, level));
  }
  code.bottom = two_convolutions(graph, x, prefix + "bottleneck", channels_of(sizes, sizes.depth),
                                 sizes.norm, border);
  return code;
}

ValueId ascend_unet(Graph& graph, const UnetCode& code, const std::string& prefix,
                    const UnetSizes& sizes, Border border, const SkipFilter& filter) {
  ValueId x = code.bottom;
  for (int64_t level = sizes.depth - 1; level >= 1; --level) {
    ValueId skip = code.skips[level - 1];
    if (filter) skip = filter(graph, skip, x, level);
    const std::string decoder = fmt::format("{}dec{}", prefix, level);
    x = enlarge(graph, x, skip, fmt::format("{}up{}", prefix, level), channels_of(sizes, level));
    x = concat(graph, {skip, x}, decoder + ".concat");
    x = two_convolutions(graph, x, decoder, channels_of(sizes, level), sizes.norm, border);
  }
  return x;
}

ValueId ascend_without_skips(Graph& graph, const UnetCode& code, const std::string& prefix,
                             const UnetSizes& sizes) {
  ValueId x = code.bottom;
  for (int64_t level = sizes.depth - 1; level >= 1; --level) {
    x = enlarge(graph, x, code.skips[level - 1], fmt::format("{}up{}", prefix, level),
                channels_of(sizes, level));
    x = two_convolutions(graph, x, fmt::format("{}dec{}", prefix, level), channels_of(sizes, level),
                         sizes.norm);
  }
  return x;
}

Graph build_unet(const ModelOptions& options, const Shape& input, Border border,
                 const SkipFilter& filter) {
  const UnetSizes sizes = read_unet_sizes(options);
  const int64_t classes = kClasses.read(options);
  Graph graph;
  const ValueId image = graph.add_input("image", ValueType::image(input));
  const UnetCode code = descend_unet(graph, image, "", sizes, border);
  const ValueId x = ascend_unet(graph, code, "", sizes, border, filter);
  finish_with_cross_entropy(
      graph, convolution(graph, x, "head", {.out_channels = classes, .kernel = {1}}));
  return graph;
}

void check_unet_sizes(const std::string& model, const ModelOptions& options, const Shape& input) {
  const int64_t depth = kUnetDepth.read(options);
  check_spatial_sizes(model, input, int64_t{1} << (depth - 1),
                      fmt::format(" with depth {}; use a larger input or less depth", depth));
}

}  // namespace tessera
