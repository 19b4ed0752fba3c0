#include "tessera/ops/norm/layer_norm.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/kernels/layer_norm.h"
#include "tessera/ops/norm/norm.h"
#include "tessera/ops/norm/sample_norm.h"

namespace tessera {
namespace {

using Over = LayerNormOptions::Over;

/// The value's shape without the batch.
Shape shape_of_sample(const ValueType& type) {
  const Shape shape = type.shape();
  return {shape.begin() + std::min<size_t>(1, shape.size()), shape.end()};
}

class ChannelLayerNorm final : public Op {
 public:
  explicit ChannelLayerNorm(const LayerNormOptions& options) : options_(options) {}

  std::string kind() const override { return "layer_norm"; }
  std::string settings() const override {
    return options_.affine ? "over channels" : "over channels, no affine";
  }

  ValueType infer_type(std::span<const ValueType> inputs) const override {
    check_norm_input(inputs[0], options_.epsilon);
    check_not_alone(inputs[0], inputs[0].channels(), "pixel");
    return inputs[0];
  }

  Box needed(int, const Box& out, const NodeTypes&) const override { return out; }
  bool keeps_input(int) const override { return true; }
  bool cheap_to_recompute() const override { return true; }
  double flops(const Box& out, const NodeTypes&) const override {
    return 8 * static_cast<double>(out.volume());  // sum, distance, square, sum; then four
  }

  void forward(KernelArgs& args) const override {
    if (args.out_box.empty()) return;
    normalise_pixels(args.inputs[0].view(args.out_box), pixel_norm(args),
                     args.output.view(args.out_box));
  }

  void input_gradient(KernelArgs& args) const override {
    if (args.out_box.empty() || !args.grad_inputs[0].tensor.defined()) return;
    normalise_pixels_gradient(args.inputs[0].view(args.out_box),
                              args.grad_output.view(args.out_box), pixel_norm(args),
                              args.grad_inputs[0].view(args.out_box));
  }

  void weight_gradient(KernelArgs& args) const override {
    if (args.out_box.empty()) return;
    const at::Tensor sums = pixel_weight_gradients(
        args.inputs[0].view(args.out_box), args.grad_output.view(args.out_box), pixel_norm(args));
    for (int i = 0; i < 2; ++i)
      args.grad_parameters[i].add_(sums[i].to(args.grad_parameters[i].scalar_type()));
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    const at::Tensor x = args.inputs[0].movedim(1, -1);
    return at::layer_norm(x, {x.size(-1)}, tensor_or_none(args.parameters, 0),
                          tensor_or_none(args.parameters, 1), options_.epsilon,
                          /*cudnn_enable=*/false)
        .movedim(-1, 1);
  }

 private:
  PixelNorm pixel_norm(const KernelArgs& args) const {
    const Range channels{0, args.types->output.channels()};
    TESSERA_CHECK(args.out_box[1] == channels,
                  "piece {} does not have all {} channels of its pixels", to_string(args.out_box),
                  channels.size());
    return {options_.epsilon, tensor_or_none(args.parameters, 0),
            tensor_or_none(args.parameters, 1)};
  }

  LayerNormOptions options_;
};

class SampleLayerNorm final : public SampleNorm {
 public:
  explicit SampleLayerNorm(const LayerNormOptions& options)
      : SampleNorm(options.affine ? Affine::kElement : Affine::kNone, options.epsilon) {}

  std::string settings() const override {
    return affine() == Affine::kNone ? "over sample, no affine" : "over sample";
  }

 private:
  std::shared_ptr<PlaneNormOp> copy() const override {
    return std::make_shared<SampleLayerNorm>(*this);
  }
  std::string norm_kind() const override { return "layer_norm"; }
  void check_norm(const ValueType& input) const override {
    check_norm_input(input, epsilon());
    check_not_alone(input, input.channels() * pixels_per_sample(input), "sample");
  }

  at::Tensor norm_reference(const ReferenceArgs& args) const override {
    return at::layer_norm(args.inputs[0], args.inputs[0].sizes().slice(1),
                          tensor_or_none(args.parameters, 0), tensor_or_none(args.parameters, 1),
                          epsilon(), /*cudnn_enable=*/false);
  }

  std::optional<std::string> norm_script(const ScriptArgs&) const override { return std::nullopt; }

  int64_t num_groups(int64_t) const override { return 1; }
};

}  // namespace

ValueId layer_norm(Graph& graph, ValueId x, const std::string& name,
                   const LayerNormOptions& options) {
  const ValueType& type = graph.type(x);
  // A sample without space is a pixel: the same numbers, and nothing to exchange.
  const bool by_pixel = options.over == Over::kChannels || type.num_spatial() == 0;
  std::vector<ParameterId> parameters;
  if (options.affine)
    parameters =
        add_affine(graph, name, by_pixel ? Shape{channels_or_zero(type)} : shape_of_sample(type));
  std::shared_ptr<const Op> op;
  if (by_pixel)
    op = std::make_shared<ChannelLayerNorm>(options);
  else
    op = std::make_shared<SampleLayerNorm>(options);
  return graph.add_node(name, op, {x}, parameters);
}

}  // namespace tessera
