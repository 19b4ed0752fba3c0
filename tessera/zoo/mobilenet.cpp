// MobileNet v2 (Sandler et al., "MobileNetV2: Inverted Residuals and Linear Bottlenecks", 2018)
// with torchvision's names. A block widens by a 1x1 convolution, filters each channel by itself,
// and narrows again without an activation:
//
//   x ── conv.0 (1x1, ReLU6) ── conv.1 (3x3 per channel, ReLU6) ── conv.2 (1x1), conv.3 ──► add
//    ╲──────────────── where neither size nor channels change ─────────────────────────────╱

#include <fmt/format.h>

#include <algorithm>

#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/conv/linear.h"
#include "tessera/ops/norm/batch_norm.h"
#include "tessera/ops/pointwise/add.h"
#include "tessera/ops/pointwise/pointwise.h"
#include "tessera/ops/pool/global_pool.h"
#include "tessera/zoo/blocks.h"
#include "tessera/zoo/entries.h"
#include "tessera/zoo/initial_weights.h"
#include "tessera/zoo/typed_options.h"

namespace tessera {
namespace {

constexpr RealOption kMobilenetWidth{"width", "factor on the channels, rounded to multiples of 8",
                                     0.01, 8};
constexpr RealOption kMobilenetDropout{"dropout", "probability before the last linear layer", 0, 1};

/// torchvision's rounding: to the nearest multiple of 8, but never down by more than a tenth.
int64_t rounded_channels(double channels) {
  const int64_t nearest = std::max<int64_t>(8, static_cast<int64_t>(channels + 4) / 8 * 8);
  return static_cast<double>(nearest) < 0.9 * channels ? nearest + 8 : nearest;
}

ValueId conv_norm(Graph& graph, ValueId x, const std::string& conv, const std::string& norm,
                  const ConvolutionOptions& options) {
  return batch_norm(graph, convolution(graph, x, conv, options), norm);
}

/// torchvision's ConvNormActivation: name.0, name.1, name.2.
ValueId conv_norm_relu6(Graph& graph, ValueId x, const std::string& name,
                        const ConvolutionOptions& options) {
  x = conv_norm(graph, x, name + ".0", name + ".1", options);
  return pointwise(graph, x, name + ".2",
                   {.function = PointwiseFunction::kHardtanh, .a = 0, .b = 6});
}

ValueId inverted_residual(Graph& graph, ValueId x, const std::string& name, int64_t expansion,
                          int64_t out_channels, int64_t stride) {
  const int64_t in_channels = graph.type(x).channels(), inner = expansion * in_channels;
  Sequential layers(name + ".conv");
  ValueId y = x;
  if (expansion != 1)
    y = conv_norm_relu6(graph, y, layers.next(),
                        {.out_channels = inner, .kernel = {1}, .bias = false});
  y = conv_norm_relu6(graph, y, layers.next(),
                      {.out_channels = inner,
                       .kernel = {3},
                       .stride = {stride},
                       .padding = {1},
                       .groups = inner,
                       .bias = false});
  const std::string conv = layers.next(), norm = layers.next();
  y = conv_norm(graph, y, conv, norm, {.out_channels = out_channels, .kernel = {1}, .bias = false});
  return stride == 1 && in_channels == out_channels ? add(graph, x, y, name + ".add") : y;
}

Graph build_mobilenet(const ModelOptions& options, const Shape& input) {
  struct Stage {
    int64_t expansion, channels, blocks, stride;
  };
  constexpr Stage kStages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                               {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  const double width = kMobilenetWidth.read(options);
  const auto scaled = [&](int64_t channels) {
    return rounded_channels(width * static_cast<double>(channels));
  };

  Graph graph;
  ValueId x = graph.add_input("image", ValueType::image(input));
  Sequential features("features");
  x = conv_norm_relu6(
      graph, x, features.next(),
      {.out_channels = scaled(32), .kernel = {3}, .stride = {2}, .padding = {1}, .bias = false});
  for (const Stage& stage : kStages)
    for (int64_t i = 0; i < stage.blocks; ++i)
      x = inverted_residual(graph, x, features.next(), stage.expansion, scaled(stage.channels),
                            i == 0 ? stage.stride : 1);
  const int64_t last = rounded_channels(1280 * std::max(1.0, width));
  x = conv_norm_relu6(graph, x, features.next(),
                      {.out_channels = last, .kernel = {1}, .bias = false});
  x = drop(graph, global_average_pool(graph, x), "classifier.0", kMobilenetDropout.read(options));
  finish_with_cross_entropy(
      graph, linear(graph, x, "classifier.1", {.out_features = kClasses.read(options)}));
  start_as_vgg(graph);
  return graph;
}

}  // namespace

ModelInfo mobilenet_v2() {
  return {.name = "mobilenet_v2",
          .summary = "MobileNet v2 with torchvision's names, for classifying images",
          .num_spatial = 2,
          .default_input = {2, 3, 224, 224},
          .options = {kMobilenetWidth.info(1), kClasses.info(1000), kMobilenetDropout.info(0.2)},
          .build = build_mobilenet};
}

}  // namespace tessera
