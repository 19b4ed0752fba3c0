#include "tessera/ops/shape/circular_pad.h"

#include <array>

#include "tessera/base/error.h"

namespace tessera {
namespace {

class CircularPad final : public Op {
 public:
  CircularPad(int axis, int64_t low, int64_t high) : axis_(axis), low_(low), high_(high) {}

  std::string kind() const override { return "circular_pad"; }
  std::string settings() const override {
    return fmt::format("axis {}, low {}, high {}", axis_, low_, high_);
  }

  ValueType infer_type(std::span<const ValueType> inputs) const override {
    ValueType type = inputs[0];
    type.axes[axis_].size += low_ + high_;
    return type;
  }

  Box needed(int input, const Box& out, const NodeTypes& types) const override {
    Box box = part_of(input, out, types);
    box[axis_] = box[axis_].shifted(-offset(input, size(types)));
    return box;
  }
  bool cheap_to_recompute() const override { return true; }
  double flops(const Box&, const NodeTypes&) const override { return 0; }

  void forward(KernelArgs& args) const override {
    for (int input = 0; input < 3; ++input) {
      const Box to = part_of(input, args.out_box, *args.types);
      if (to.empty()) continue;
      const Box from = needed(input, args.out_box, *args.types);
      args.output.view(to).copy_(args.inputs[input].view(from));
    }
  }

  void input_gradient(KernelArgs& args) const override {
    for (int input = 0; input < 3; ++input) {
      const Operand& gradient = args.grad_inputs[input];
      const Box from = part_of(input, args.out_box, *args.types);
      if (gradient.tensor.defined() && !from.empty())
        gradient.tensor.copy_(args.grad_output.view(from));
    }
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    const int64_t size = args.inputs[0].size(axis_);
    return at::cat({args.inputs[0].narrow(axis_, size - low_, low_), args.inputs[1],
                    args.inputs[2].narrow(axis_, 0, high_)},
                   axis_);
  }

 private:
  int64_t size(const NodeTypes& types) const { return types.inputs[0].axes[axis_].size; }

  /// Output position minus input position.
  int64_t offset(int input, int64_t size) const { return low_ + (input - 1) * size; }

  /// The part of `out` that a reading fills.
  Box part_of(int input, const Box& out, const NodeTypes& types) const {
    const int64_t end_of_image = low_ + size(types);
    const std::array<Range, 3> parts{
        {{0, low_}, {low_, end_of_image}, {end_of_image, end_of_image + high_}}};
    Box part = out;
    part[axis_] = intersect(out[axis_], parts[input]);
    return part;
  }

  int axis_;
  int64_t low_;
  int64_t high_;
};

}  // namespace

ValueId circular_pad(Graph& graph, ValueId x, const std::string& name, int axis, int64_t low,
                     int64_t high) {
  const int64_t size = graph.type(x).axes[axis].size;
  TESSERA_CHECK(0 <= low && low <= size && 0 <= high && high <= size,
                "{}: {} and {} pixels around {}", name, low, high, size);
  return graph.add_node(name, std::make_shared<CircularPad>(axis, low, high), {x, x, x});
}

}  // namespace tessera
