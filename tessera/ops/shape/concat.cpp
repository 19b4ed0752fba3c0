#include "tessera/ops/shape/concat.h"

#include "tessera/base/error.h"
#include "tessera/graph/script.h"
#include "tessera/kernels/pack.h"

namespace tessera {
namespace {

class Concat final : public Op {
 public:
  explicit Concat(int axis) : axis_(axis) {}

  std::string kind() const override { return "concat"; }
  std::string settings() const override {
    return axis_ == 1 ? std::string() : fmt::format("axis {}", axis_);
  }

  ValueType infer_type(std::span<const ValueType> inputs) const override {
    if (inputs.empty()) throw_error<InvalidInput>("no values; give at least 1");
    check_axis(inputs[0]);
    ValueType output = inputs[0];
    output.axes[axis_].size = 0;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const ValueType& input = inputs[i];
      if (input.element != Element::kReal)
        throw_error<InvalidInput>("input {} holds labels; give real numbers", i);
      if (!agree(inputs[0], input))
        throw_error<InvalidInput>(
            "input 0 is {} and input {} is {}; all sizes but {} must be equal",
            to_string(inputs[0]), i, to_string(input),
            axis_ == 1 ? "the channels" : fmt::format("axis {}", axis_));
      output.axes[axis_].size += input.axes[axis_].size;
    }
    return output;
  }

  Box needed(int input, const Box& out, const NodeTypes& types) const override {
    const Range filled = filled_by(input, types);
    Box box = out;
    box[axis_] = intersect(out[axis_], filled).shifted(-filled.begin);
    return box;
  }
  bool cheap_to_recompute() const override { return true; }
  bool takes_narrow(Phase, at::DeviceType) const override { return true; }
  double flops(const Box&, const NodeTypes&) const override { return 0; }

  void forward(KernelArgs& args) const override {
    std::vector<at::Tensor> inputs, parts;
    for (size_t i = 0; i < args.inputs.size(); ++i) {
      const Box from = needed(static_cast<int>(i), args.out_box, *args.types);
      if (from.empty()) continue;
      inputs.push_back(args.inputs[i].view(from));
      parts.push_back(part_of(i, args.output, args));
    }
    move_boxes(BoxStore::kReplace, inputs, parts);
  }

  void input_gradient(KernelArgs& args) const override {
    std::vector<at::Tensor> parts, gradients;
    for (size_t i = 0; i < args.grad_inputs.size(); ++i) {
      const at::Tensor& gradient = args.grad_inputs[i].tensor;
      if (!gradient.defined() || gradient.numel() == 0) continue;
      parts.push_back(part_of(i, args.grad_output, args));
      gradients.push_back(gradient);
    }
    move_boxes(BoxStore::kReplace, parts, gradients);
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    return at::cat(args.inputs, axis_);
  }

  std::optional<std::string> script(const ScriptArgs& args) const override {
    return script_call("torch.cat", {script_list(args.inputs), std::to_string(axis_)});
  }

 private:
  void check_axis(const ValueType& type) const {
    if (axis_ < 1 || axis_ >= type.num_axes() || type.axes[axis_].kind == AxisKind::kPart)
      throw_error<InvalidInput>(
          "axis {} of {}; concatenate along the channels or a spatial axis, from 1 to {}", axis_,
          to_string(type), type.num_axes() - 1);
  }

  bool agree(const ValueType& a, const ValueType& b) const {
    if (a.num_axes() != b.num_axes()) return false;
    for (int axis = 0; axis < a.num_axes(); ++axis)
      if (a.axes[axis].kind != b.axes[axis].kind ||
          (axis != axis_ && a.axes[axis].size != b.axes[axis].size))
        return false;
    return true;
  }

  /// The outputs along the axis that input `input` fills.
  Range filled_by(int input, const NodeTypes& types) const {
    int64_t begin = 0;
    for (int before = 0; before < input; ++before) begin += types.inputs[before].axes[axis_].size;
    return {begin, begin + types.inputs[input].axes[axis_].size};
  }

  at::Tensor part_of(size_t input, const Operand& output, const KernelArgs& args) const {
    Box box = args.out_box;
    box[axis_] = intersect(box[axis_], filled_by(static_cast<int>(input), *args.types));
    return output.view(box);
  }

  int axis_;
};

}  // namespace

ValueId concat(Graph& graph, const std::vector<ValueId>& values, const std::string& name,
               int axis) {
  return graph.add_node(name, std::make_shared<Concat>(axis), values);
}

}  // namespace tessera
