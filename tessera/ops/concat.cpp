#include "tessera/ops/concat.h"

#include "tessera/base/error.h"

namespace tessera {
namespace {

constexpr int kChannelAxis = 1;

bool differ_only_in_channels(const ValueType& a, const ValueType& b) {
  if (a.num_axes() != b.num_axes()) return false;
  for (int axis = 0; axis < a.num_axes(); ++axis)
    if (axis != kChannelAxis && a.axes[axis].size != b.axes[axis].size) return false;
  return true;
}

class Concat : public Op {
 public:
  std::string kind() const override { return "concat"; }

  ValueType infer_type(std::span<const ValueType> inputs) const override {
    if (inputs.empty()) throw_error<InvalidInput>("no values; give at least 1");
    ValueType output = inputs[0];
    int64_t channels = 0;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const ValueType& input = inputs[i];
      if (input.element != Element::kReal || input.num_axes() <= kChannelAxis ||
          input.axes[kChannelAxis].kind != AxisKind::kChannel)
        throw_error<InvalidInput>("input {} is {}; give real numbers with a channel axis", i,
                                  to_string(input));
      if (!differ_only_in_channels(inputs[0], input))
        throw_error<InvalidInput>(
            "input 0 is {} and input {} is {}; all sizes but the channels must be equal",
            to_string(inputs[0]), i, to_string(input));
      channels += input.channels();
    }
    output.axes[kChannelAxis].size = channels;
    return output;
  }

  Box needed(int input, const Box& out, const NodeTypes& types) const override {
    Box box = out;
    box[kChannelAxis] = intersect(out[kChannelAxis], channels_of(input, types))
                            .shifted(-channels_of(input, types).begin);
    return box;
  }
  bool cheap_to_recompute() const override { return true; }

  void forward(KernelArgs& args) const override {
    for (size_t i = 0; i < args.inputs.size(); ++i) {
      const Box from = needed(static_cast<int>(i), args.out_box, *args.types);
      if (!from.empty()) part_of(i, args.output, args).copy_(args.inputs[i].view(from));
    }
  }

  void input_gradient(KernelArgs& args) const override {
    for (size_t i = 0; i < args.grad_inputs.size(); ++i) {
      const at::Tensor& gradient = args.grad_inputs[i].tensor;
      if (gradient.defined() && gradient.numel() > 0)
        gradient.copy_(part_of(i, args.grad_output, args));
    }
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    return at::cat(args.inputs, kChannelAxis);
  }

 private:
  /// The output channels that input `input` fills.
  static Range channels_of(int input, const NodeTypes& types) {
    int64_t begin = 0;
    for (int before = 0; before < input; ++before) begin += types.inputs[before].channels();
    return {begin, begin + types.inputs[input].channels()};
  }

  static at::Tensor part_of(size_t input, const Operand& output, const KernelArgs& args) {
    Box box = args.out_box;
    box[kChannelAxis] =
        intersect(box[kChannelAxis], channels_of(static_cast<int>(input), *args.types));
    return output.view(box);
  }
};

}  // namespace

ValueId concat(Graph& graph, const std::vector<ValueId>& values, const std::string& name) {
  return graph.add_node(name, std::make_shared<Concat>(), values);
}

}  // namespace tessera
