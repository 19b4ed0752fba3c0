#include "tests/unit/inspect/example_graphs.h"

#include <fmt/format.h>

#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/conv/linear.h"
#include "tessera/ops/loss/cross_entropy.h"
#include "tessera/ops/norm/batch_norm.h"
#include "tessera/ops/pointwise/add.h"
#include "tessera/ops/pointwise/relu.h"
#include "tessera/ops/pool/global_pool.h"
#include "tessera/ops/pool/pooling.h"
#include "tessera/ops/shape/concat.h"

namespace tessera {
namespace {

constexpr ValueId kImage = 0;

ValueId conv_norm_relu(Graph& graph, ValueId x, const std::string& name, int64_t channels,
                       int64_t kernel, int64_t stride = 1) {
  x = convolution(
      graph, x, name + ".conv",
      {.out_channels = channels, .kernel = {kernel}, .stride = {stride}, .padding = {kernel / 2}});
  return relu(graph, batch_norm(graph, x, name + ".norm"), name + ".relu");
}

void finish(Graph& graph, ValueId x) {
  const ValueId logits = linear(graph, global_average_pool(graph, x), "head", {.out_features = 10});
  graph.mark_output(logits);
  cross_entropy(graph, logits, add_target(graph, logits, "target"), "loss");
}

}  // namespace

Graph image_graph(const Shape& shape) {
  Graph graph;
  graph.add_input("image", ValueType::image(shape));
  return graph;
}

Graph vgg_graph(const Shape& shape, const std::vector<int>& convolutions_per_block) {
  Graph graph = image_graph(shape);
  ValueId x = kImage;
  for (size_t block = 0; block < convolutions_per_block.size(); ++block) {
    for (int i = 0; i < convolutions_per_block[block]; ++i) {
      const std::string name = fmt::format("block{}.{}", block + 1, i + 1);
      x = convolution(graph, x, name, {.out_channels = 4, .kernel = {3}, .padding = {1}});
      x = relu(graph, x, name + ".relu");
    }
    x = max_pool(graph, x, fmt::format("pool{}", block + 1), {.kernel = {2}});
  }
  finish(graph, x);
  return graph;
}

Graph residual_graph(const Shape& shape, int blocks_per_stage) {
  Graph graph = image_graph(shape);
  ValueId x = conv_norm_relu(graph, kImage, "stem", 8, 3);
  for (int64_t stage = 1; stage <= 3; ++stage) {
    for (int block = 1; block <= blocks_per_stage; ++block) {
      const std::string name = fmt::format("stage{}.{}", stage, block);
      const bool is_coarser = stage > 1 && block == 1;
      const int64_t stride = is_coarser ? 2 : 1, channels = 4 << stage;
      ValueId y = conv_norm_relu(graph, x, name + ".1", channels, 3, stride);
      y = conv_norm_relu(graph, y, name + ".2", channels, 3);
      if (is_coarser)
        x = batch_norm(graph,
                       convolution(graph, x, name + ".projection",
                                   {.out_channels = channels, .kernel = {1}, .stride = {2}}),
                       name + ".projection.norm");
      x = relu(graph, add(graph, y, x, name + ".add"), name + ".relu");
    }
  }
  finish(graph, x);
  return graph;
}

Graph dense_graph(const Shape& shape, int num_layers) {
  Graph graph = image_graph(shape);
  std::vector<ValueId> features{conv_norm_relu(graph, kImage, "stem", 8, 3)};
  for (int layer = 1; layer <= num_layers; ++layer) {
    const std::string name = fmt::format("features.denseblock.denselayer{}", layer);
    const ValueId all = concat(graph, features, name + ".concat");
    const ValueId narrow = conv_norm_relu(graph, all, name + ".1", 16, 1);
    features.push_back(conv_norm_relu(graph, narrow, name + ".2", 4, 3));
  }
  finish(graph, concat(graph, features, "features.concat"));
  return graph;
}

Graph inception_graph(const Shape& shape, int num_modules) {
  Graph graph = image_graph(shape);
  ValueId x = conv_norm_relu(graph, kImage, "stem", 8, 3, 2);
  for (int module = 1; module <= num_modules; ++module) {
    const std::string name = fmt::format("inception{}", module);
    const ValueId one = conv_norm_relu(graph, x, name + ".branch1", 4, 1);
    ValueId three = conv_norm_relu(graph, x, name + ".branch2.reduce", 4, 1);
    three = conv_norm_relu(graph, three, name + ".branch2", 8, 3);
    ValueId five = conv_norm_relu(graph, x, name + ".branch3.reduce", 4, 1);
    five = conv_norm_relu(graph, five, name + ".branch3.1", 4, 3);
    five = conv_norm_relu(graph, five, name + ".branch3.2", 4, 3);
    ValueId pool = max_pool(graph, x, name + ".pool", {{3}, {1}, {1}});
    pool = conv_norm_relu(graph, pool, name + ".branch4", 4, 1);
    x = concat(graph, {one, three, five, pool}, name + ".concat");
    if (module % 2 == 0) x = max_pool(graph, x, name + ".down", {.kernel = {2}});
  }
  finish(graph, x);
  return graph;
}

}  // namespace tessera
