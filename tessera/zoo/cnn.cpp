// A plain classifier for signals, images and volumes: blocks of convolution, norm, ReLU and max
// pooling, then global average pooling and a linear head. The smallest network in which everything
// distributed happens: halos, statistics over the image, partial sums, a head on a split batch.

#include <fmt/format.h>

#include "tessera/ops/conv/linear.h"
#include "tessera/ops/pool/global_pool.h"
#include "tessera/zoo/blocks.h"
#include "tessera/zoo/entries.h"
#include "tessera/zoo/typed_options.h"

namespace tessera {
namespace {

constexpr IntegerOption kBase{"base", "channels of the first block, doubled by each next", 1, 4096};
constexpr IntegerOption kDepth{"depth", "number of blocks", 1, 12};

Graph build_cnn(const std::string& model, const ModelOptions& options, const Shape& input) {
  const int64_t base = kBase.read(options), depth = kDepth.read(options);
  const int64_t classes = kClasses.read(options);
  const NormChoice norm = read_norm(options);
  check_spatial_sizes(model, input, int64_t{1} << depth,
                      fmt::format(" with depth {}; use a larger input or less depth", depth));

  Graph graph;
  ValueId x = graph.add_input("image", ValueType::image(input));
  for (int64_t i = 0; i < depth; ++i) {
    const std::string block = fmt::format("block{}", i + 1);
    x = conv_norm_relu(graph, x, block, "", base << i, norm);
    x = halve(graph, x, block + ".pool");
  }
  x = global_average_pool(graph, x);
  finish_with_cross_entropy(graph, linear(graph, x, "head", {.out_features = classes}));
  return graph;
}

Shape default_input(int num_spatial) {
  if (num_spatial == 1) return {2, 1, 4096};
  if (num_spatial == 2) return {2, 3, 128, 128};
  return {2, 1, 32, 32, 32};
}

}  // namespace

ModelInfo cnn(int num_spatial) {
  const std::string name = fmt::format("cnn{}d", num_spatial);
  const char* images[] = {"signals", "images", "volumes"};
  return {.name = name,
          .summary = fmt::format("classifier for {}: conv-norm-ReLU-pool blocks, global average, "
                                 "linear head",
                                 images[num_spatial - 1]),
          .num_spatial = num_spatial,
          .default_input = default_input(num_spatial),
          .options = {kBase.info(16), kDepth.info(4), kClasses.info(10), norm_option()},
          .build = [name](const ModelOptions& options, const Shape& input) {
            return build_cnn(name, options, input);
          }};
}

}  // namespace tessera
