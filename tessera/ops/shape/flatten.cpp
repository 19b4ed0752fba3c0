#include "tessera/ops/shape/flatten.h"

#include "tessera/base/error.h"
#include "tessera/graph/script.h"

namespace tessera {
namespace {

class Flatten final : public Op {
 public:
  std::string kind() const override { return "flatten"; }

  ValueType infer_type(std::span<const ValueType> inputs) const override {
    const ValueType& input = inputs[0];
    if (input.num_axes() < 3 || input.first_spatial() != 2)
      throw_error<InvalidInput>("input {} must have batch, channels and 1 to 3 spatial axes",
                                to_string(input));
    ValueType output;
    output.element = input.element;
    const int64_t features = Box::whole(input.shape()).volume() / input.batch();
    output.axes = {input.axes[0], {AxisKind::kChannel, features, -1, {}}};
    return output;
  }

  Box needed(int, const Box& out, const NodeTypes& types) const override {
    Box box = Box::whole(types.inputs[0].shape());
    box[0] = out[0];
    return box;
  }

  void forward(KernelArgs& args) const override {
    const Box box = needed(0, args.out_box, *args.types);
    // A view's features can be seen as an image whatever its strides; an image with margins cannot
    // be seen as features.
    args.output.view(args.out_box).view(box.shape()).copy_(args.inputs[0].view(box));
  }

  void input_gradient(KernelArgs& args) const override {
    const Operand& grad = args.grad_inputs[0];
    if (grad.tensor.defined()) grad.tensor.copy_(args.grad_output.tensor.view(grad.box.shape()));
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    return at::flatten(args.inputs[0], 1);
  }

  std::optional<std::string> script(const ScriptArgs& args) const override {
    return script_call("torch.flatten", {args.inputs[0], "1"});
  }
};

}  // namespace

ValueId flatten(Graph& graph, ValueId x) {
  return graph.add_node("flatten", std::make_shared<Flatten>(), {x});
}

}  // namespace tessera
