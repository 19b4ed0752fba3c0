#include "tessera/zoo/blocks.h"

#include <algorithm>
#include <cmath>

#include "tessera/base/error.h"
#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/loss/cross_entropy.h"
#include "tessera/ops/pointwise/dropout.h"
#include "tessera/ops/pointwise/relu.h"
#include "tessera/ops/pool/pooling.h"
#include "tessera/ops/shape/pad.h"

namespace tessera {

int64_t scaled_channels(int64_t channels, int64_t width, int64_t default_width) {
  const double factor = static_cast<double>(width) / static_cast<double>(default_width);
  return std::max<int64_t>(1, std::llround(static_cast<double>(channels) * factor));
}

ValueId conv_norm_relu(Graph& graph, ValueId x, const std::string& prefix,
                       const std::string& suffix, int64_t channels, const NormChoice& norm,
                       Border border) {
  x = convolution(graph, x, prefix + ".conv" + suffix,
                  {.out_channels = channels,
                   .kernel = {3},
                   .padding = {border == Border::kSame ? 1 : 0},
                   .bias = norm.leaves_bias()});
  x = norm.add(graph, x, prefix + ".norm" + suffix);
  return relu(graph, x, prefix + ".relu" + suffix);
}

ValueId two_convolutions(Graph& graph, ValueId x, const std::string& level, int64_t channels,
                         const NormChoice& norm, Border border) {
  x = conv_norm_relu(graph, x, level, "1", channels, norm, border);
  return conv_norm_relu(graph, x, level, "2", channels, norm, border);
}

ValueId drop(Graph& graph, ValueId x, const std::string& name, double probability) {
  return probability > 0 ? dropout(graph, x, name, {.probability = probability}) : x;
}

ValueId halve(Graph& graph, ValueId x, const std::string& name) {
  return max_pool(graph, x, name, {.kernel = {2}, .stride = {2}});
}

ValueId fit_to(Graph& graph, ValueId x, ValueId like, const std::string& name) {
  const ValueType &type = graph.type(x), &wanted = graph.type(like);
  PadOptions options;
  bool differs = false;
  for (int axis = type.first_spatial(); axis < type.num_axes(); ++axis) {
    options.low.push_back(0);
    options.high.push_back(wanted.axes[axis].size - type.axes[axis].size);
    differs = differs || options.high.back() != 0;
  }
  const ValueId fitted = differs ? pad(graph, x, name, options) : x;
  const SizeRule::By by = differs ? SizeRule::By::kOperator : SizeRule::By::kPadding;
  graph.set_size_rule(fitted, {.like = like, .by = by});
  return fitted;
}

void finish_with_cross_entropy(Graph& graph, ValueId logits) {
  graph.mark_output(logits);
  cross_entropy(graph, logits, add_target(graph, logits, "target"), "loss");
}

void check_spatial_sizes(const std::string& model, const Shape& input, int64_t least,
                         const std::string& remedy) {
  for (size_t axis = 2; axis < input.size(); ++axis)
    if (input[axis] < least)
      throw_error<InvalidInput>(
          "[{}] input {}: size {} of spatial axis {} is too small; the least size is {}{}", model,
          to_string(input), input[axis], axis - 2, least, remedy);
}

}  // namespace tessera
