#include "tessera/ops/pointwise/softmax.h"

#include <memory>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/kernels/softmax.h"

namespace tessera {
namespace {

using Form = SoftmaxOptions::Form;

class Softmax final : public Op {
 public:
  explicit Softmax(const SoftmaxOptions& options) : form_(options.form), groups_(options.groups) {}

  std::string settings() const override {
    return groups_ == 1 ? "" : fmt::format("{} groups", groups_);
  }
  std::string kind() const override { return form_ == Form::kSoftmax ? "softmax" : "log_softmax"; }

  ValueType infer_type(std::span<const ValueType> inputs) const override {
    const ValueType& input = inputs[0];
    if (input.element != Element::kReal || input.num_axes() < 2 ||
        input.axes[1].kind != AxisKind::kChannel || input.channels() < 1)
      throw_error<InvalidInput>("input {} must be real, with batch and at least one channel first",
                                to_string(input));
    if (groups_ < 1 || input.channels() % groups_ != 0)
      throw_error<InvalidInput>("{} of {}; give a divisor of the channels",
                                counted(groups_, "group"), counted(input.channels(), "channel"));
    return input;
  }
  /// All channels: they are never cut, so the output holds them too.
  Box needed(int, const Box& out, const NodeTypes&) const override { return out; }
  bool keeps_output() const override { return true; }
  double flops(const Box& out, const NodeTypes&) const override {
    return 12.0 * static_cast<double>(out.volume());
  }

  void forward(KernelArgs& args) const override {
    if (args.out_box.empty()) return;
    const at::Tensor x = args.inputs[0].view(args.out_box), y = args.output.view(args.out_box);
    for (int64_t group = 0; group < groups_; ++group)
      softmax_channels(form_, channels_of(group, x), channels_of(group, y));
  }

  void input_gradient(KernelArgs& args) const override {
    if (args.out_box.empty() || !args.grad_inputs[0].tensor.defined()) return;
    const at::Tensor y = args.output.view(args.out_box), dy = args.grad_output.view(args.out_box),
                     dx = args.grad_inputs[0].view(args.out_box);
    for (int64_t group = 0; group < groups_; ++group)
      softmax_channels_gradient(form_, channels_of(group, y), channels_of(group, dy),
                                channels_of(group, dx));
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    const at::Tensor& x = args.inputs[0];
    const at::Tensor grouped = x.reshape({x.size(0), groups_, x.size(1) / groups_, -1});
    const at::Tensor y =
        form_ == Form::kSoftmax ? at::softmax(grouped, 2) : at::log_softmax(grouped, 2);
    return y.reshape(x.sizes());
  }

 private:
  at::Tensor channels_of(int64_t group, const at::Tensor& tensor) const {
    const int64_t count = tensor.size(1) / groups_;
    return tensor.narrow(1, group * count, count);
  }

  Form form_;
  int64_t groups_;
};

}  // namespace

ValueId softmax(Graph& graph, ValueId x, const std::string& name, const SoftmaxOptions& options) {
  return graph.add_node(name, std::make_shared<Softmax>(options), {x});
}

}  // namespace tessera
