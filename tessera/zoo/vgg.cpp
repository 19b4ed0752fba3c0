// VGG (Simonyan, Zisserman, "Very Deep Convolutional Networks for Large-Scale Image Recognition",
// 2015) with torchvision's names: those of vgg16, and with norm=batch those of vgg16_bn.

#include <fmt/format.h>

#include <array>

#include "tessera/base/error.h"
#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/conv/linear.h"
#include "tessera/ops/pointwise/relu.h"
#include "tessera/ops/pool/adaptive_pool.h"
#include "tessera/ops/shape/flatten.h"
#include "tessera/zoo/blocks.h"
#include "tessera/zoo/entries.h"
#include "tessera/zoo/initial_weights.h"
#include "tessera/zoo/typed_options.h"

namespace tessera {
namespace {

constexpr int64_t kVggDefaultWidth = 64;
constexpr IntegerOption kVggWidth{"width", "channels of the first convolution; all others scale", 1,
                                  4096};
constexpr RealOption kVggDropout{"dropout", "probability after the hidden linear layers", 0, 1};
constexpr int64_t kVggLeastSize = 32;  // five pools of 2

/// Convolutions in each of the five blocks.
std::array<int, 5> convolutions_per_block(int depth) {
  if (depth == 11) return {1, 1, 2, 2, 2};
  if (depth == 13) return {2, 2, 2, 2, 2};
  if (depth == 16) return {2, 2, 3, 3, 3};
  TESSERA_CHECK(depth == 19, "vgg{}", depth);
  return {2, 2, 4, 4, 4};
}

/// Here convolutions have a bias even before a norm: torchvision's have.
ValueId vgg_features(Graph& graph, ValueId x, int depth, int64_t width, const NormChoice& norm) {
  constexpr std::array<int64_t, 5> kChannels{64, 128, 256, 512, 512};
  const std::array<int, 5> convolutions = convolutions_per_block(depth);
  Sequential features("features");
  for (size_t block = 0; block < kChannels.size(); ++block) {
    const int64_t channels = scaled_channels(kChannels[block], width, kVggDefaultWidth);
    for (int i = 0; i < convolutions[block]; ++i) {
      x = convolution(graph, x, features.next(),
                      {.out_channels = channels, .kernel = {3}, .padding = {1}});
      if (norm.kind != NormChoice::Kind::kNone) x = norm.add(graph, x, features.next());
      x = relu(graph, x, features.next());
    }
    x = halve(graph, x, features.next());
  }
  return x;
}

ValueId vgg_classifier(Graph& graph, ValueId x, int64_t width, int64_t classes, double dropout) {
  const int64_t hidden = scaled_channels(4096, width, kVggDefaultWidth);
  x = flatten(graph, x);
  x = relu(graph, linear(graph, x, "classifier.0", {.out_features = hidden}), "classifier.1");
  x = drop(graph, x, "classifier.2", dropout);
  x = relu(graph, linear(graph, x, "classifier.3", {.out_features = hidden}), "classifier.4");
  x = drop(graph, x, "classifier.5", dropout);
  return linear(graph, x, "classifier.6", {.out_features = classes});
}

Graph build_vgg(int depth, const ModelOptions& options, const Shape& input) {
  const int64_t width = kVggWidth.read(options), classes = kClasses.read(options);
  check_spatial_sizes(fmt::format("vgg{}", depth), input, kVggLeastSize, "");
  Graph graph;
  ValueId x = graph.add_input("image", ValueType::image(input));
  x = vgg_features(graph, x, depth, width, read_norm(options));
  x = adaptive_average_pool(graph, x, "avgpool", {.size = {7, 7}});
  finish_with_cross_entropy(graph,
                            vgg_classifier(graph, x, width, classes, kVggDropout.read(options)));
  start_as_vgg(graph);
  return graph;
}

}  // namespace

ModelInfo vgg(int depth) {
  return {.name = fmt::format("vgg{}", depth),
          .summary = fmt::format("VGG{} with torchvision's names, for classifying images", depth),
          .num_spatial = 2,
          .default_input = {2, 3, 224, 224},
          .options = {kVggWidth.info(kVggDefaultWidth), kClasses.info(1000), norm_option("none"),
                      kVggDropout.info(0.5)},
          .build = [depth](const ModelOptions& options, const Shape& input) {
            return build_vgg(depth, options, input);
          }};
}

}  // namespace tessera
