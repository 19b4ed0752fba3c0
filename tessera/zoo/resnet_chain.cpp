// A residual chain: many blocks of one shape, each a small step u + h F(u), between an opening
// convolution and a head. The layers are steps in time, h = time / blocks; with more blocks the
// steps become smaller, and the network tends to the solution of a differential equation. The
// network for layers in parallel (docs/multigrid.md).
//
//   open.conv ─ open.norm ─ open.relu ─ step1 ─ step2 ─ ... ─ mean over space ─ head
//
//   step:  u ───────────────────────────► u + h F
//           ╲ conv 3^d ─ norm ─ relu ────╱

#include <fmt/format.h>

#include "tessera/ops/chain/chain_arithmetic.h"
#include "tessera/ops/conv/linear.h"
#include "tessera/ops/pool/global_pool.h"
#include "tessera/zoo/blocks.h"
#include "tessera/zoo/entries.h"
#include "tessera/zoo/typed_options.h"

namespace tessera {
namespace {

constexpr IntegerOption kWidth{"width", "channels of all blocks", 1, 4096};
constexpr IntegerOption kChainBlocks{"blocks", "residual blocks", 1, 10000};
constexpr RealOption kTime{"time", "how far all blocks together step; each takes time / blocks", 0,
                           1e6};

Graph build_resnet_chain(const ModelOptions& options, const Shape& input) {
  const int64_t width = kWidth.read(options), blocks = kChainBlocks.read(options);
  const double step = kTime.read(options) / static_cast<double>(blocks);
  const NormChoice norm = read_any_norm(options);
  Graph graph;
  ValueId x = graph.add_input("image", ValueType::image(input));
  x = conv_norm_relu(graph, x, "open", "", width, norm);
  for (int64_t i = 1; i <= blocks; ++i) {
    const std::string name = fmt::format("step{}", i);
    x = chain_step(graph, x, conv_norm_relu(graph, x, name, "", width, norm), name + ".add", step);
  }
  x = global_average_pool(graph, x);
  finish_with_cross_entropy(graph,
                            linear(graph, x, "head", {.out_features = kClasses.read(options)}));
  return graph;
}

Shape chain_input(int num_spatial) {
  if (num_spatial == 1) return {2, 1, 1024};
  if (num_spatial == 2) return {2, 3, 64, 64};
  return {2, 1, 16, 16, 16};
}

}  // namespace

ModelInfo resnet_chain(int num_spatial) {
  const char* images[] = {"signals", "images", "volumes"};
  return {.name = fmt::format("resnet_chain{}d", num_spatial),
          .summary = fmt::format("classifier for {}: a chain of residual blocks of one shape, for "
                                 "layers in parallel",
                                 images[num_spatial - 1]),
          .num_spatial = num_spatial,
          .default_input = chain_input(num_spatial),
          .options = with_any_norm(
              {kWidth.info(8), kChainBlocks.info(32), kTime.info(1), kClasses.info(10)}),
          .build = build_resnet_chain};
}

}  // namespace tessera
