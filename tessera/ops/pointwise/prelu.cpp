#include "tessera/ops/pointwise/prelu.h"

#include <cmath>
#include <memory>

#include "tessera/base/error.h"
#include "tessera/kernels/prelu.h"

namespace tessera {
namespace {

class Prelu final : public Op {
 public:
  explicit Prelu(const PreluOptions& options) : options_(options) {}

  std::string kind() const override { return "prelu"; }
  std::string settings() const override {
    return options_.num_parameters == 1 ? "one slope" : "a slope per channel";
  }

  ValueType infer_type(std::span<const ValueType> inputs) const override {
    const ValueType& input = inputs[0];
    if (input.element != Element::kReal || input.num_axes() < 2 || input.num_axes() > 5 ||
        input.axes[1].kind != AxisKind::kChannel)
      throw_error<InvalidInput>("input {} must be real, with batch, channels and up to 3 more axes",
                                to_string(input));
    if (options_.num_parameters != 1 && options_.num_parameters != input.channels())
      throw_error<InvalidInput>("num_parameters {} must be 1 or the number of channels, {}",
                                options_.num_parameters, input.channels());
    if (!std::isfinite(options_.initial))
      throw_error<InvalidInput>("initial {} must be finite", options_.initial);
    return input;
  }
  Box needed(int, const Box& out, const NodeTypes&) const override { return out; }
  bool keeps_input(int) const override { return true; }
  bool cheap_to_recompute() const override { return true; }

  void forward(KernelArgs& args) const override {
    if (args.out_box.empty()) return;
    const at::Tensor x = args.inputs[0].view(args.out_box);
    apply_slopes(x, x, slopes(args), args.output.view(args.out_box));
  }

  void input_gradient(KernelArgs& args) const override {
    if (args.out_box.empty() || !args.grad_inputs[0].tensor.defined()) return;
    apply_slopes(args.inputs[0].view(args.out_box), args.grad_output.view(args.out_box),
                 slopes(args), args.grad_inputs[0].view(args.out_box));
  }

  void weight_gradient(KernelArgs& args) const override {
    if (args.out_box.empty()) return;
    const at::Tensor sums =
        slope_gradients(args.inputs[0].view(args.out_box), args.grad_output.view(args.out_box));
    const at::Tensor& gradient = args.grad_parameters[0];
    if (options_.num_parameters == 1)
      gradient.add_(sums.sum().to(gradient.scalar_type()));
    else
      gradient.narrow(0, args.out_box[1].begin, args.out_box[1].size())
          .add_(sums.to(gradient.scalar_type()));
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    return at::prelu(args.inputs[0], args.parameters[0]);
  }

 private:
  /// One for each channel of the piece.
  at::Tensor slopes(const KernelArgs& args) const {
    const Range& channels = args.out_box[1];
    const at::Tensor& weight = args.parameters[0];
    return options_.num_parameters == 1 ? weight.expand({channels.size()})
                                        : weight.narrow(0, channels.begin, channels.size());
  }

  PreluOptions options_;
};

}  // namespace

ValueId prelu(Graph& graph, ValueId x, const std::string& name, const PreluOptions& options) {
  const ParameterId weight = graph.add_parameter({name + ".weight",
                                                  {options.num_parameters},
                                                  ParameterRole::kTrainable,
                                                  {Initial::Kind::kConstant, options.initial}});
  return graph.add_node(name, std::make_shared<Prelu>(options), {x}, {weight});
}

}  // namespace tessera
