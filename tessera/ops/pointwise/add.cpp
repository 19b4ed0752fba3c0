#include "tessera/ops/pointwise/add.h"

#include "tessera/base/error.h"
#include "tessera/graph/script.h"

namespace tessera {
namespace {

class Add : public Op {
 public:
  std::string kind() const override { return "add"; }

  ValueType infer_type(std::span<const ValueType> inputs) const override {
    for (const ValueType& input : inputs)
      if (input.element != Element::kReal)
        throw_error<InvalidInput>("an input holds labels; give real numbers");
    if (inputs[0].shape() != inputs[1].shape())
      throw_error<InvalidInput>("the inputs are {} and {}; their shapes must be equal",
                                to_string(inputs[0]), to_string(inputs[1]));
    return inputs[0];
  }
  Box needed(int, const Box& out, const NodeTypes&) const override { return out; }

  bool takes_narrow(Phase, at::DeviceType) const override { return true; }

  void forward(KernelArgs& args) const override {
    at::Tensor output = args.output.view(args.out_box);
    at::add_out(output, args.inputs[0].view(args.out_box), args.inputs[1].view(args.out_box));
  }

  void input_gradient(KernelArgs& args) const override {
    for (const Operand& gradient : args.grad_inputs)
      if (gradient.tensor.defined()) gradient.tensor.copy_(args.grad_output.tensor);
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    return args.inputs[0] + args.inputs[1];
  }

  std::optional<std::string> script(const ScriptArgs& args) const override {
    return script_call("torch.add", args.inputs);
  }
};

}  // namespace

ValueId add(Graph& graph, ValueId a, ValueId b, const std::string& name) {
  return graph.add_node(name, std::make_shared<Add>(), {a, b});
}

}  // namespace tessera
