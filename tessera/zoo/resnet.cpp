// ResNet (He, Zhang, Ren, Sun, "Deep Residual Learning for Image Recognition", 2016) with
// torchvision's names. As there, a bottleneck has its stride in the 3x3 convolution.

#include <fmt/format.h>

#include <array>

#include "tessera/base/error.h"
#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/conv/linear.h"
#include "tessera/ops/norm/batch_norm.h"
#include "tessera/ops/pointwise/add.h"
#include "tessera/ops/pointwise/relu.h"
#include "tessera/ops/pool/global_pool.h"
#include "tessera/ops/pool/pooling.h"
#include "tessera/zoo/blocks.h"
#include "tessera/zoo/entries.h"
#include "tessera/zoo/initial_weights.h"
#include "tessera/zoo/typed_options.h"

namespace tessera {
namespace {

constexpr IntegerOption kResnetWidth{"width", "channels of the first convolution; all others scale",
                                     1, 4096};

struct Form {
  bool bottleneck = false;
  std::array<int, 4> blocks{};  // in each stage
};

Form form_of(int depth) {
  if (depth == 18) return {false, {2, 2, 2, 2}};
  if (depth == 34) return {false, {3, 4, 6, 3}};
  if (depth == 50) return {true, {3, 4, 6, 3}};
  if (depth == 101) return {true, {3, 4, 23, 3}};
  TESSERA_CHECK(depth == 152, "resnet{}", depth);
  return {true, {3, 8, 36, 3}};
}

ValueId conv_norm(Graph& graph, ValueId x, const std::string& conv, const std::string& norm,
                  int64_t channels, int64_t kernel, int64_t stride = 1) {
  x = convolution(graph, x, conv,
                  {.out_channels = channels,
                   .kernel = {kernel},
                   .stride = {stride},
                   .padding = {kernel / 2},
                   .bias = false});
  return batch_norm(graph, x, norm);
}

/// The convolutions of a block, without the activation of the last.
ValueId residual_branch(Graph& graph, ValueId x, const std::string& block, bool bottleneck,
                        int64_t channels, int64_t stride) {
  const auto layer = [&](int index, int64_t out_channels, int64_t kernel, int64_t layer_stride) {
    if (index > 1) x = relu(graph, x, fmt::format("{}.relu{}", block, index - 1));
    x = conv_norm(graph, x, fmt::format("{}.conv{}", block, index),
                  fmt::format("{}.bn{}", block, index), out_channels, kernel, layer_stride);
  };
  layer(1, channels, bottleneck ? 1 : 3, bottleneck ? 1 : stride);
  layer(2, channels, 3, bottleneck ? stride : 1);
  if (bottleneck) layer(3, 4 * channels, 1, 1);
  return x;
}

ValueId residual_block(Graph& graph, ValueId x, const std::string& block, bool bottleneck,
                       int64_t channels, int64_t stride) {
  const ValueId branch = residual_branch(graph, x, block, bottleneck, channels, stride);
  const int64_t out_channels = graph.type(branch).channels();
  ValueId shortcut = x;
  if (stride != 1 || graph.type(x).channels() != out_channels)
    shortcut = conv_norm(graph, x, block + ".downsample.0", block + ".downsample.1", out_channels,
                         1, stride);
  return relu(graph, add(graph, branch, shortcut, block + ".add"), block + ".relu");
}

Graph build_resnet(int depth, const ModelOptions& options, const Shape& input) {
  const int64_t width = kResnetWidth.read(options), classes = kClasses.read(options);
  const Form form = form_of(depth);
  Graph graph;
  ValueId x = graph.add_input("image", ValueType::image(input));
  x = relu(graph, conv_norm(graph, x, "conv1", "bn1", width, 7, 2), "relu");
  x = max_pool(graph, x, "maxpool", {.kernel = {3}, .stride = {2}, .padding = {1}});
  for (int stage = 0; stage < 4; ++stage)
    for (int i = 0; i < form.blocks[stage]; ++i)
      x = residual_block(graph, x, fmt::format("layer{}.{}", stage + 1, i), form.bottleneck,
                         width << stage, stage > 0 && i == 0 ? 2 : 1);
  x = global_average_pool(graph, x);
  finish_with_cross_entropy(graph, linear(graph, x, "fc", {.out_features = classes}));
  start_convolutions(graph, kaiming_normal(Fan::kOut));
  return graph;
}

}  // namespace

ModelInfo resnet(int depth) {
  return {
      .name = fmt::format("resnet{}", depth),
      .summary = fmt::format("ResNet-{} with torchvision's names, for classifying images", depth),
      .num_spatial = 2,
      .default_input = {2, 3, 224, 224},
      .options = {kResnetWidth.info(64), kClasses.info(1000)},
      .build = [depth](const ModelOptions& options, const Shape& input) {
        return build_resnet(depth, options, input);
      }};
}

}  // namespace tessera
