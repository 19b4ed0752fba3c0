#include "tessera/zoo/blocks.h"

#include "tessera/base/error.h"
#include "tessera/ops/batch_norm.h"
#include "tessera/ops/convolution.h"
#include "tessera/ops/cross_entropy.h"
#include "tessera/ops/pad.h"
#include "tessera/ops/pooling.h"
#include "tessera/ops/relu.h"

namespace tessera {

OptionInfo norm_option() {
  return {"norm", "batch", "normalisation behind each convolution; batch or none"};
}

Norm read_norm(const ModelOptions& options) {
  return options.choice("norm", {"batch", "none"}) == "batch" ? Norm::kBatch : Norm::kNone;
}

ValueId conv_norm_relu(Graph& graph, ValueId x, const std::string& prefix,
                       const std::string& suffix, int64_t channels, Norm norm) {
  x = convolution(
      graph, x, prefix + ".conv" + suffix,
      {.out_channels = channels, .kernel = {3}, .padding = {1}, .bias = norm == Norm::kNone});
  if (norm == Norm::kBatch) x = batch_norm(graph, x, prefix + ".norm" + suffix);
  return relu(graph, x, prefix + ".relu" + suffix);
}

ValueId halve(Graph& graph, ValueId x, const std::string& name) {
  return max_pool(graph, x, name, {.kernel = {2}, .stride = {2}});
}

ValueId pad_to(Graph& graph, ValueId x, ValueId like, const std::string& name) {
  const ValueType &type = graph.type(x), &wanted = graph.type(like);
  PadOptions options;
  bool missing = false;
  for (int axis = type.first_spatial(); axis < type.num_axes(); ++axis) {
    const int64_t rest = wanted.axes[axis].size - type.axes[axis].size;
    TESSERA_CHECK(rest >= 0, "{}: {} is larger than {}", name, to_string(type), to_string(wanted));
    options.low.push_back(0);
    options.high.push_back(rest);
    missing = missing || rest > 0;
  }
  return missing ? pad(graph, x, name, options) : x;
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
