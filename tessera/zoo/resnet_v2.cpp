// Residual networks with pre-activation for small images (He, Zhang, Ren, Sun, "Identity Mappings
// in Deep Residual Networks", 2016): norm and ReLU come before each convolution, and nothing stands
// on the path of the identities.
//
//        x ───────────────────────────────────────────────────────► add     a block
//         ╲ norm1 ─ relu1 ─ conv1 ─ norm2 ─ relu2 ─ conv2 (─ ... 3) ╱
//
//        x ─ norm1 ─ relu1 ──────────── shortcut (1x1) ───────────► add     where the size changes
//                     ╲ conv1 ─ norm2 ─ relu2 ─ conv2 (─ ... 3) ───╱
//
// The first block of all splits after its first activation, too, and an activation of its own
// follows the last block. Of 6n + 2 layers with basic blocks (n = 18: 110), of 9n + 2 with
// bottlenecks (n = 12: 110, n = 111: 1001), for n blocks in each of the three stages.

#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/conv/linear.h"
#include "tessera/ops/norm/batch_norm.h"
#include "tessera/ops/pointwise/add.h"
#include "tessera/ops/pointwise/relu.h"
#include "tessera/ops/pool/global_pool.h"
#include "tessera/zoo/blocks.h"
#include "tessera/zoo/entries.h"
#include "tessera/zoo/typed_options.h"

namespace tessera {
namespace {

constexpr IntegerOption kResnetV2Width{
    "width", "channels of the first convolution; all others scale", 1, 4096};
constexpr IntegerOption kBlocks{"blocks", "residual blocks in each of the three stages", 1, 1000};

struct BlockForm {
  bool bottleneck = false;
  int64_t channels = 0;  // inside the block
  int64_t stride = 1;
  bool is_first = false;  // of the network

  int64_t out_channels() const { return bottleneck ? 4 * channels : channels; }
};

ValueId same_convolution(Graph& graph, ValueId x, const std::string& name, int64_t channels,
                         int64_t kernel, int64_t stride = 1) {
  return convolution(graph, x, name,
                     {.out_channels = channels,
                      .kernel = {kernel},
                      .stride = {stride},
                      .padding = {kernel / 2},
                      .bias = false});
}

ValueId pre_activation(Graph& graph, ValueId x, const std::string& prefix,
                       const std::string& suffix) {
  return relu(graph, batch_norm(graph, x, prefix + "norm" + suffix), prefix + "relu" + suffix);
}

ValueId block(Graph& graph, ValueId x, const std::string& name, const BlockForm& form) {
  const int64_t channels = form.channels, out_channels = form.out_channels();
  const ValueId active = pre_activation(graph, x, name + ".", "1");
  const auto next = [&](ValueId y, const std::string& index, int64_t count, int64_t kernel,
                        int64_t stride) {
    if (index != "1") y = pre_activation(graph, y, name + ".", index);
    return same_convolution(graph, y, name + ".conv" + index, count, kernel, stride);
  };
  ValueId y = active;
  if (form.bottleneck) {
    y = next(y, "1", channels, 1, 1);
    y = next(y, "2", channels, 3, form.stride);
    y = next(y, "3", out_channels, 1, 1);
  } else {
    y = next(y, "1", channels, 3, form.stride);
    y = next(y, "2", channels, 3, 1);
  }
  ValueId shortcut = form.is_first ? active : x;
  if (form.stride != 1 || graph.type(x).channels() != out_channels)
    shortcut = same_convolution(graph, active, name + ".shortcut", out_channels, 1, form.stride);
  return add(graph, y, shortcut, name + ".add");
}

Graph build_resnet_v2(const ModelOptions& options, const Shape& input) {
  const int64_t width = kResnetV2Width.read(options), blocks = kBlocks.read(options);
  const bool bottleneck = options.choice("block", {"basic", "bottleneck"}) == "bottleneck";
  Graph graph;
  ValueId x = graph.add_input("image", ValueType::image(input));
  x = same_convolution(graph, x, "stem", width, 3);
  for (int64_t stage = 0; stage < 3; ++stage)
    for (int64_t i = 0; i < blocks; ++i)
      x = block(graph, x, fmt::format("stage{}.{}", stage + 1, i),
                {.bottleneck = bottleneck,
                 .channels = width << stage,
                 .stride = stage > 0 && i == 0 ? 2 : 1,
                 .is_first = stage == 0 && i == 0});
  x = global_average_pool(graph, pre_activation(graph, x, "", ""));
  finish_with_cross_entropy(graph,
                            linear(graph, x, "head", {.out_features = kClasses.read(options)}));
  return graph;
}

}  // namespace

ModelInfo resnet_v2(int depth) {
  TESSERA_CHECK(depth == 110 || depth == 1001, "resnet{}_v2", depth);
  const bool bottleneck = depth == 1001;
  return {
      .name = fmt::format("resnet{}_v2", depth),
      .summary = fmt::format("ResNet-{} with pre-activation, for classifying small images", depth),
      .num_spatial = 2,
      .default_input = {2, 3, 32, 32},
      .options = {kResnetV2Width.info(16),
                  kBlocks.info(bottleneck ? 111 : 18),
                  {"block", bottleneck ? "bottleneck" : "basic",
                   "basic (two 3x3 convolutions) or bottleneck (1x1, 3x3, 1x1)"},
                  kClasses.info(10)},
      .build = build_resnet_v2};
}

}  // namespace tessera
