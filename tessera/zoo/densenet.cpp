// DenseNet (Huang, Liu, van der Maaten, Weinberger, "Densely Connected Convolutional Networks",
// 2017) with torchvision's names. Each layer of a block reads the outputs of all before it:
//
//   x ─┬─────────────┬────────────────────┬──────► concat ── transition
//      └─ layer1 ─┬──┴── concat ─ layer2 ─┤──────►
//                 └───────────────────────┴─ ...

#include <fmt/format.h>

#include <array>

#include "tessera/base/error.h"
#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/conv/linear.h"
#include "tessera/ops/norm/batch_norm.h"
#include "tessera/ops/pointwise/relu.h"
#include "tessera/ops/pool/global_pool.h"
#include "tessera/ops/pool/pooling.h"
#include "tessera/ops/shape/concat.h"
#include "tessera/zoo/blocks.h"
#include "tessera/zoo/entries.h"
#include "tessera/zoo/initial_weights.h"
#include "tessera/zoo/typed_options.h"

namespace tessera {
namespace {

constexpr IntegerOption kGrowth{"growth", "channels that each layer adds; the first has twice them",
                                1, 1024};
constexpr int64_t kDensenetLeastSize = 29;  // where the last transition has one window

std::array<int, 4> layers_per_block(int depth) {
  if (depth == 121) return {6, 12, 24, 16};
  if (depth == 161) return {6, 12, 36, 24};
  if (depth == 169) return {6, 12, 32, 32};
  TESSERA_CHECK(depth == 201, "densenet{}", depth);
  return {6, 12, 48, 32};
}

ValueId norm_then_relu(Graph& graph, ValueId x, const std::string& norm,
                       const std::string& activation) {
  return relu(graph, batch_norm(graph, x, norm), activation);
}

/// A bottleneck of 4 growths, then the new channels.
ValueId dense_layer(Graph& graph, ValueId x, const std::string& layer, int64_t growth) {
  x = norm_then_relu(graph, x, layer + ".norm1", layer + ".relu1");
  x = convolution(graph, x, layer + ".conv1",
                  {.out_channels = 4 * growth, .kernel = {1}, .bias = false});
  x = norm_then_relu(graph, x, layer + ".norm2", layer + ".relu2");
  return convolution(graph, x, layer + ".conv2",
                     {.out_channels = growth, .kernel = {3}, .padding = {1}, .bias = false});
}

ValueId dense_block(Graph& graph, ValueId x, const std::string& block, int num_layers,
                    int64_t growth) {
  std::vector<ValueId> features{x};
  for (int i = 1; i <= num_layers; ++i) {
    const std::string layer = fmt::format("{}.denselayer{}", block, i);
    if (i > 1) x = concat(graph, features, layer + ".concat");
    features.push_back(dense_layer(graph, x, layer, growth));
  }
  return concat(graph, features, block + ".concat");
}

/// Half the channels, half the size.
ValueId transition(Graph& graph, ValueId x, const std::string& name) {
  x = norm_then_relu(graph, x, name + ".norm", name + ".relu");
  x = convolution(graph, x, name + ".conv",
                  {.out_channels = graph.type(x).channels() / 2, .kernel = {1}, .bias = false});
  return average_pool(graph, x, name + ".pool", {.kernel = {2}, .stride = {2}});
}

Graph build_densenet(int depth, const ModelOptions& options, const Shape& input) {
  const int64_t growth = kGrowth.read(options), classes = kClasses.read(options);
  const std::array<int, 4> layers = layers_per_block(depth);
  check_spatial_sizes(fmt::format("densenet{}", depth), input, kDensenetLeastSize, "");

  Graph graph;
  ValueId x = graph.add_input("image", ValueType::image(input));
  x = convolution(
      graph, x, "features.conv0",
      {.out_channels = 2 * growth, .kernel = {7}, .stride = {2}, .padding = {3}, .bias = false});
  x = norm_then_relu(graph, x, "features.norm0", "features.relu0");
  x = max_pool(graph, x, "features.pool0", {.kernel = {3}, .stride = {2}, .padding = {1}});
  for (int i = 1; i <= 4; ++i) {
    x = dense_block(graph, x, fmt::format("features.denseblock{}", i), layers[i - 1], growth);
    if (i < 4) x = transition(graph, x, fmt::format("features.transition{}", i));
  }
  x = norm_then_relu(graph, x, "features.norm5", "features.relu5");
  x = global_average_pool(graph, x);
  finish_with_cross_entropy(graph, linear(graph, x, "classifier", {.out_features = classes}));
  start_convolutions(graph, kaiming_normal(Fan::kIn));
  zero_biases_of_linears(graph);
  return graph;
}

}  // namespace

ModelInfo densenet(int depth) {
  return {
      .name = fmt::format("densenet{}", depth),
      .summary = fmt::format("DenseNet-{} with torchvision's names, for classifying images", depth),
      .num_spatial = 2,
      .default_input = {2, 3, 224, 224},
      .options = {kGrowth.info(depth == 161 ? 48 : 32), kClasses.info(1000)},
      .build = [depth](const ModelOptions& options, const Shape& input) {
        return build_densenet(depth, options, input);
      }};
}

}  // namespace tessera
