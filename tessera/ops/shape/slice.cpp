#include "tessera/ops/shape/slice.h"

#include "tessera/base/error.h"

namespace tessera {
namespace {

class Slice final : public Op {
 public:
  explicit Slice(const SliceOptions& options) : options_(options) {}

  std::string kind() const override { return "slice"; }
  std::string settings() const override {
    const std::string text =
        fmt::format("axis {}, {}:{}", options_.axis, options_.begin, options_.end);
    return options_.step == 1 ? text : fmt::format("{}, step {}", text, options_.step);
  }

  ValueType infer_type(std::span<const ValueType> inputs) const override {
    ValueType type = inputs[0];
    if (type.element != Element::kReal)
      throw_error<InvalidInput>("the input holds labels; give real numbers");
    if (options_.axis < 1 || options_.axis >= type.num_axes() ||
        type.axes[options_.axis].kind == AxisKind::kPart)
      throw_error<InvalidInput>("axis {} of {}; slice the channels or a spatial axis, from 1 to {}",
                                options_.axis, to_string(type), type.num_axes() - 1);
    Axis& axis = type.axes[options_.axis];
    if (options_.begin < 0 || options_.begin >= options_.end || options_.end > axis.size)
      throw_error<InvalidInput>(
          "begin {} and end {} of axis {}, whose size is {}; give 0 <= begin < end <= {}",
          options_.begin, options_.end, options_.axis, axis.size, axis.size);
    if (options_.step < 1) throw_error<InvalidInput>("step {} must be at least 1", options_.step);
    axis.size = (options_.end - options_.begin + options_.step - 1) / options_.step;
    if (axis.kind == AxisKind::kSpatial) axis.stride = axis.stride * Ratio::of(options_.step, 1);
    return type;
  }

  Box needed(int, const Box& out, const NodeTypes&) const override {
    Box box = out;
    const Range& range = out[options_.axis];
    box[options_.axis] =
        range.empty() ? Range{} : Range{source(range.begin), source(range.end - 1) + 1};
    return box;
  }
  bool cheap_to_recompute() const override { return true; }
  double flops(const Box&, const NodeTypes&) const override { return 0; }

  void forward(KernelArgs& args) const override {
    if (args.out_box.empty()) return;
    const Box from = needed(0, args.out_box, *args.types);
    args.output.view(args.out_box).copy_(every_step(args.inputs[0].view(from)));
  }

  void input_gradient(KernelArgs& args) const override {
    const Operand& gradient = args.grad_inputs[0];
    if (!gradient.tensor.defined() || gradient.box.empty()) return;
    if (options_.step > 1) gradient.tensor.zero_();
    every_step(gradient.tensor).copy_(args.grad_output.view(args.out_box));
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    return args.inputs[0].slice(options_.axis, options_.begin, options_.end, options_.step);
  }

 private:
  int64_t source(int64_t out) const { return options_.begin + out * options_.step; }

  /// The elements of a needed box that are read.
  at::Tensor every_step(const at::Tensor& view) const {
    return view.slice(options_.axis, 0, view.size(options_.axis), options_.step);
  }

  SliceOptions options_;
};

}  // namespace

ValueId slice(Graph& graph, ValueId x, const std::string& name, const SliceOptions& options) {
  return graph.add_node(name, std::make_shared<Slice>(options), {x});
}

}  // namespace tessera
