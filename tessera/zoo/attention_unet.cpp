// Attention U-Net (Oktay et al., "Attention U-Net: Learning Where to Look for the Pancreas", 2018):
// a U-Net whose skips pass a gate, steered by the coarser level on its way up.
//
//   skip ──┬───────────────────────────────────────────────────────────────────► multiply
//          └─ gate.skip (2x2, stride 2) ─► add ─ relu ─ psi (1x1) ─ sigmoid ─ resample ╱
//   below ─── gate.signal (1x1) ─────────╱
//
// The gate's weights lie on the coarser grid and are resampled linearly to that of the skip.

#include <algorithm>

#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/pointwise/add.h"
#include "tessera/ops/pointwise/arithmetic.h"
#include "tessera/ops/pointwise/pointwise.h"
#include "tessera/ops/pointwise/relu.h"
#include "tessera/ops/shape/interpolate.h"
#include "tessera/zoo/entries.h"
#include "tessera/zoo/unet_frame.h"

namespace tessera {
namespace {

ValueId gated(Graph& graph, ValueId skip, ValueId below, int64_t level) {
  const std::string gate = fmt::format("gate{}", level);
  const Shape shape = graph.type(skip).shape();
  const int64_t channels = std::max<int64_t>(1, shape[1] / 2);
  const ValueId from_skip =
      convolution(graph, skip, gate + ".skip",
                  {.out_channels = channels, .kernel = {2}, .stride = {2}, .bias = false});
  const ValueId signal =
      convolution(graph, below, gate + ".signal", {.out_channels = channels, .kernel = {1}});
  ValueId x = relu(graph, add(graph, from_skip, signal, gate + ".add"), gate + ".relu");
  x = convolution(graph, x, gate + ".psi", {.out_channels = 1, .kernel = {1}});
  x = pointwise(graph, x, gate + ".sigmoid", {.function = PointwiseFunction::kSigmoid});
  x = interpolate(graph, x, gate + ".resample",
                  {.mode = InterpolationMode::kLinear, .size = {shape[2], shape[3]}});
  graph.set_size_rule(x, {.like = skip});
  return arithmetic(graph, skip, x, gate + ".multiply", Arithmetic::kMultiply);
}

}  // namespace

ModelInfo attention_unet2d() {
  const std::string name = "attention_unet2d";
  return {.name = name,
          .summary = "U-Net with attention gates on its skips for segmenting images",
          .num_spatial = 2,
          .default_input = {1, 3, 256, 256},
          .options = with_any_norm({kUnetBase.info(64), kUnetDepth.info(5), kClasses.info(2)}),
          .build = [name](const ModelOptions& options, const Shape& input) {
            check_unet_sizes(name, options, input);
            return build_unet(options, input, Border::kSame, gated);
          }};
}

}  // namespace tessera
