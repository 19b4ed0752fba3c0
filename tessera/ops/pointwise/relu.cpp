#include "tessera/ops/pointwise/relu.h"

#include "tessera/base/error.h"
#include "tessera/graph/script.h"

namespace tessera {
namespace {

class Relu : public Op {
 public:
  std::string kind() const override { return "relu"; }

  ValueType infer_type(std::span<const ValueType> inputs) const override {
    if (inputs[0].element != Element::kReal)
      throw_error<InvalidInput>("the input holds labels; give real numbers");
    return inputs[0];
  }
  Box needed(int, const Box& out, const NodeTypes&) const override { return out; }
  bool keeps_output() const override { return true; }
  bool takes_narrow(Phase, at::DeviceType) const override { return true; }

  void forward(KernelArgs& args) const override {
    at::Tensor output = args.output.view(args.out_box);
    at::clamp_min_out(output, args.inputs[0].view(args.out_box), 0);
  }

  void input_gradient(KernelArgs& args) const override {
    at::Tensor& gradient = args.grad_inputs[0].tensor;
    if (!gradient.defined()) return;
    at::threshold_backward_out(gradient, args.grad_output.tensor, args.output.view(args.out_box),
                               0);
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    return at::relu(args.inputs[0]);
  }

  std::optional<std::string> script(const ScriptArgs& args) const override {
    return script_call("torch.relu", args.inputs);
  }
};

}  // namespace

ValueId relu(Graph& graph, ValueId x, const std::string& name) {
  return graph.add_node(name, std::make_shared<Relu>(), {x});
}

bool is_relu(const Op& op) { return dynamic_cast<const Relu*>(&op) != nullptr; }

}  // namespace tessera
