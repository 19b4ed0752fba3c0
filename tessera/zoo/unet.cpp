// U-Net (Ronneberger, Fischer, Brox, "U-Net: Convolutional Networks for Biomedical Image
// Segmentation", 2015; in 3-D: Cicek et al., "3D U-Net", 2016) with same padding, so that the
// logits have the size of the input:
//
//   enc1 ───────────── skip ──────────────► dec1 ── head
//     pool1 ╲                           ╱ up1
//           enc2 ───── skip ────► dec2
//             pool2 ╲         ╱ up2
//                   bottleneck

#include <fmt/format.h>

#include "tessera/ops/concat.h"
#include "tessera/ops/convolution.h"
#include "tessera/ops/transposed_convolution.h"
#include "tessera/zoo/blocks.h"
#include "tessera/zoo/entries.h"
#include "tessera/zoo/typed_options.h"

namespace tessera {
namespace {

constexpr IntegerOption kBase{"base", "channels of the first level, doubled by each next", 1, 4096};
constexpr IntegerOption kDepth{"depth", "number of levels, the bottleneck among them", 2, 12};

ValueId two_convolutions(Graph& graph, ValueId x, const std::string& level, int64_t channels,
                         Norm norm) {
  x = conv_norm_relu(graph, x, level, "1", channels, norm);
  return conv_norm_relu(graph, x, level, "2", channels, norm);
}

/// From the level below to level `level`, whose encoder left `skip`.
ValueId ascend(Graph& graph, ValueId x, ValueId skip, int64_t level, int64_t channels, Norm norm) {
  const std::string up = fmt::format("up{}", level), decoder = fmt::format("dec{}", level);
  x = transposed_convolution(graph, x, up,
                             {.out_channels = channels, .kernel = {2}, .stride = {2}});
  x = pad_to(graph, x, skip, up + ".pad");
  x = concat(graph, {skip, x}, decoder + ".concat");
  return two_convolutions(graph, x, decoder, channels, norm);
}

Graph build(const std::string& model, const ModelOptions& options, const Shape& input) {
  const int64_t base = kBase.read(options), depth = kDepth.read(options);
  const int64_t classes = kClasses.read(options);
  const Norm norm = read_norm(options);
  check_spatial_sizes(model, input, int64_t{1} << (depth - 1),
                      fmt::format(" with depth {}; use a larger input or less depth", depth));

  Graph graph;
  ValueId x = graph.add_input("image", ValueType::image(input));
  std::vector<ValueId> skips;
  for (int64_t level = 1; level < depth; ++level) {
    skips.push_back(
        two_convolutions(graph, x, fmt::format("enc{}", level), base << (level - 1), norm));
    x = halve(graph, skips.back(), fmt::format("pool{}", level));
  }
  x = two_convolutions(graph, x, "bottleneck", base << (depth - 1), norm);
  for (int64_t level = depth - 1; level >= 1; --level)
    x = ascend(graph, x, skips[level - 1], level, base << (level - 1), norm);
  x = convolution(graph, x, "head", {.out_channels = classes, .kernel = {1}});
  finish_with_cross_entropy(graph, x);
  return graph;
}

}  // namespace

ModelInfo unet(int num_spatial) {
  const std::string name = fmt::format("unet{}d", num_spatial);
  return {.name = name,
          .summary = fmt::format("U-Net with same padding for segmenting {}",
                                 num_spatial == 2 ? "images" : "volumes"),
          .num_spatial = num_spatial,
          .default_input = num_spatial == 2 ? Shape{1, 3, 256, 256} : Shape{1, 1, 64, 64, 64},
          .options = {kBase.info(64), kDepth.info(5), kClasses.info(2), norm_option()},
          .build = [name](const ModelOptions& options, const Shape& input) {
            return build(name, options, input);
          }};
}

}  // namespace tessera
