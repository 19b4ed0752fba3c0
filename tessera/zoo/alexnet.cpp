// AlexNet in the form of torchvision (Krizhevsky, "One weird trick for parallelizing convolutional
// neural networks", 2014), with its names: features.0 to features.12, classifier.0 to classifier.6.

#include <fmt/format.h>

#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/conv/linear.h"
#include "tessera/ops/pointwise/relu.h"
#include "tessera/ops/pool/adaptive_pool.h"
#include "tessera/ops/pool/pooling.h"
#include "tessera/ops/shape/flatten.h"
#include "tessera/zoo/blocks.h"
#include "tessera/zoo/entries.h"
#include "tessera/zoo/typed_options.h"

namespace tessera {
namespace {

constexpr int64_t kAlexnetDefaultWidth = 64;
constexpr IntegerOption kAlexnetWidth{
    "width", "channels of the first convolution; all others scale", 1, 4096};
constexpr RealOption kAlexnetDropout{"dropout", "probability before the hidden linear layers", 0,
                                     1};
constexpr int64_t kAlexnetLeastSize = 63;  // where the last pooling has one window

ValueId alexnet_features(Graph& graph, ValueId x, int64_t width) {
  struct Layer {
    int index;
    int64_t channels, kernel, stride, padding;
    bool pooled;
  };
  constexpr Layer kLayers[] = {{0, 64, 11, 4, 2, true},
                               {3, 192, 5, 1, 2, true},
                               {6, 384, 3, 1, 1, false},
                               {8, 256, 3, 1, 1, false},
                               {10, 256, 3, 1, 1, true}};
  for (const Layer& layer : kLayers) {
    const auto name = [&](int offset) { return fmt::format("features.{}", layer.index + offset); };
    x = convolution(graph, x, name(0),
                    {.out_channels = scaled_channels(layer.channels, width, kAlexnetDefaultWidth),
                     .kernel = {layer.kernel},
                     .stride = {layer.stride},
                     .padding = {layer.padding}});
    x = relu(graph, x, name(1));
    if (layer.pooled) x = max_pool(graph, x, name(2), {.kernel = {3}, .stride = {2}});
  }
  return x;
}

/// The first dropout stands before flatten rather than after it: the same elements, and the
/// lowering can then multiply each piece of a cut map with its part of classifier.1.
ValueId alexnet_classifier(Graph& graph, ValueId x, int64_t width, int64_t classes,
                           double dropout) {
  const int64_t hidden = scaled_channels(4096, width, kAlexnetDefaultWidth);
  x = flatten(graph, drop(graph, x, "classifier.0", dropout));
  x = relu(graph, linear(graph, x, "classifier.1", {.out_features = hidden}), "classifier.2");
  x = drop(graph, x, "classifier.3", dropout);
  x = relu(graph, linear(graph, x, "classifier.4", {.out_features = hidden}), "classifier.5");
  return linear(graph, x, "classifier.6", {.out_features = classes});
}

Graph build_alexnet(const ModelOptions& options, const Shape& input) {
  const int64_t width = kAlexnetWidth.read(options), classes = kClasses.read(options);
  check_spatial_sizes("alexnet", input, kAlexnetLeastSize, "");
  Graph graph;
  ValueId x = graph.add_input("image", ValueType::image(input));
  x = alexnet_features(graph, x, width);
  x = adaptive_average_pool(graph, x, "avgpool", {.size = {6, 6}});
  finish_with_cross_entropy(
      graph, alexnet_classifier(graph, x, width, classes, kAlexnetDropout.read(options)));
  return graph;
}

}  // namespace

ModelInfo alexnet() {
  return {.name = "alexnet",
          .summary = "AlexNet with torchvision's names, for classifying images",
          .num_spatial = 2,
          .default_input = {2, 3, 224, 224},
          .options = {kAlexnetWidth.info(kAlexnetDefaultWidth), kClasses.info(1000),
                      kAlexnetDropout.info(0.5)},
          .build = build_alexnet};
}

}  // namespace tessera
