#include "tessera/ops/pointwise/channel_reduction.h"

#include <memory>

#include "tessera/base/error.h"
#include "tessera/kernels/channel_reduction.h"

namespace tessera {
namespace {

using How = ChannelReductionOptions::How;

class ChannelReduction final : public Op {
 public:
  explicit ChannelReduction(const ChannelReductionOptions& options) : how_(options.how) {}

  std::string kind() const override {
    return how_ == How::kSum ? "channel_sum" : how_ == How::kMean ? "channel_mean" : "channel_max";
  }

  ValueType infer_type(std::span<const ValueType> inputs) const override {
    ValueType type = inputs[0];
    if (type.element != Element::kReal || type.num_axes() < 2 ||
        type.axes[1].kind != AxisKind::kChannel || type.channels() < 1)
      throw_error<InvalidInput>("input {} must be real, with batch and at least one channel first",
                                to_string(type));
    type.axes[1].size = 1;
    return type;
  }
  Box needed(int, const Box& out, const NodeTypes& types) const override {
    Box box = out;
    if (!out[1].empty()) box[1] = {0, types.inputs[0].channels()};
    return box;
  }
  /// For each output, the channel of the maximum.
  Saved saved(const Box& out, const NodeTypes& types) const override {
    if (how_ != How::kMax) return {};
    return {types.inputs[0].channels() <= 256 ? at::kByte : at::kInt, out.volume()};
  }
  bool cheap_to_recompute() const override { return how_ != How::kMax; }
  double flops(const Box& out, const NodeTypes& types) const override {
    return static_cast<double>(needed(0, out, types).volume());
  }

  void forward(KernelArgs& args) const override {
    if (args.out_box.empty()) return;
    const at::Tensor input = args.inputs[0].view(needed(0, args.out_box, *args.types));
    const at::Tensor output = args.output.view(args.out_box);
    if (how_ == How::kMax)
      channel_maxima(input, output, args.saved);
    else
      sum_channels(input, divisor(input), output);
  }

  void input_gradient(KernelArgs& args) const override {
    if (args.out_box.empty() || !args.grad_inputs[0].tensor.defined()) return;
    at::Tensor gradient = args.grad_inputs[0].view(needed(0, args.out_box, *args.types));
    const at::Tensor dy = args.grad_output.view(args.out_box);
    if (how_ == How::kMax)
      channel_maxima_gradient(dy, args.saved, gradient);
    else
      at::div_out(gradient, dy.expand_as(gradient),
                  at::scalar_tensor(divisor(gradient), gradient.options()));
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    const at::Tensor& x = args.inputs[0];
    if (how_ == How::kMax) return std::get<0>(at::max(x, 1, /*keepdim=*/true));
    return how_ == How::kSum ? at::sum(x, 1, /*keepdim=*/true) : at::mean(x, 1, /*keepdim=*/true);
  }

 private:
  double divisor(const at::Tensor& x) const {
    return how_ == How::kMean ? static_cast<double>(x.size(1)) : 1.0;
  }

  How how_;
};

}  // namespace

ValueId channel_reduction(Graph& graph, ValueId x, const std::string& name,
                          const ChannelReductionOptions& options) {
  return graph.add_node(name, std::make_shared<ChannelReduction>(options), {x});
}

}  // namespace tessera
