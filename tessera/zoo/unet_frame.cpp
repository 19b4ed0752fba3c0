#include "tessera/zoo/unet_frame.h"

#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/conv/transposed_convolution.h"
#include "tessera/ops/shape/concat.h"

namespace tessera {
namespace {

/// From the level below to level `level`, whose encoder left `skip`.
ValueId ascend(Graph& graph, ValueId x, ValueId skip, int64_t level, int64_t channels,
               const NormChoice& norm, Border border) {
  const std::string up = fmt::format("up{}", level), decoder = fmt::format("dec{}", level);
  x = transposed_convolution(graph, x, up,
                             {.out_channels = channels, .kernel = {2}, .stride = {2}});
  x = fit_to(graph, x, skip, up + ".pad");
  x = concat(graph, {skip, x}, decoder + ".concat");
  return two_convolutions(graph, x, decoder, channels, norm, border);
}

}  // namespace

Graph build_unet(const ModelOptions& options, const Shape& input, Border border,
                 const SkipFilter& filter) {
  const int64_t base = kUnetBase.read(options), depth = kUnetDepth.read(options);
  const int64_t classes = kClasses.read(options);
  const NormChoice norm = read_any_norm(options);

  Graph graph;
  ValueId x = graph.add_input("image", ValueType::image(input));
  std::vector<ValueId> skips;
  for (int64_t level = 1; level < depth; ++level) {
    skips.push_back(
        two_convolutions(graph, x, fmt::format("enc{}", level), base << (level - 1), norm, border));
    x = halve(graph, skips.back(), fmt::format("pool{}", level));
  }
  x = two_convolutions(graph, x, "bottleneck", base << (depth - 1), norm, border);
  for (int64_t level = depth - 1; level >= 1; --level) {
    ValueId skip = skips[level - 1];
    if (filter) skip = filter(graph, skip, x, level);
    x = ascend(graph, x, skip, level, base << (level - 1), norm, border);
  }
  x = convolution(graph, x, "head", {.out_channels = classes, .kernel = {1}});
  finish_with_cross_entropy(graph, x);
  return graph;
}

void check_unet_sizes(const std::string& model, const ModelOptions& options, const Shape& input) {
  const int64_t depth = kUnetDepth.read(options);
  check_spatial_sizes(model, input, int64_t{1} << (depth - 1),
                      fmt::format(" with depth {}; use a larger input or less depth", depth));
}

}  // namespace tessera
