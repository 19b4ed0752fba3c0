#include "tessera/ops/pool/amax.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/kernels/scratch.h"

namespace tessera {
namespace {

class Amax final : public Op {
 public:
  explicit Amax(std::vector<int> axes) : axes_(std::move(axes)) {
    for (int axis : axes_) dims_.push_back(axis);
  }

  std::string kind() const override { return "amax"; }
  std::string settings() const override {
    return fmt::format("axes {}", to_string(Shape(dims_.begin(), dims_.end())));
  }

  ValueType infer_type(std::span<const ValueType> inputs) const override {
    ValueType type = inputs[0];
    if (type.element != Element::kReal)
      throw_error<InvalidInput>("the input holds labels; give real numbers");
    if (axes_.empty()) throw_error<InvalidInput>("no axis is given; give at least one, from 1");
    for (int axis : axes_) {
      if (axis < 1 || axis >= type.num_axes() || std::count(axes_.begin(), axes_.end(), axis) > 1)
        throw_error<InvalidInput>("axis {} of {}; give each of 1 to {} at most once", axis,
                                  to_string(type), type.num_axes() - 1);
      Axis& reduced = type.axes[axis];
      if (reduced.kind == AxisKind::kSpatial)
        reduced.stride = reduced.stride * Ratio::of(reduced.size, 1);
      reduced.size = 1;
    }
    return type;
  }

  Box needed(int, const Box& out, const NodeTypes& types) const override {
    Box box = out;
    for (int axis : axes_)
      box[axis] = out[axis].empty() ? Range{0, 0} : Range{0, types.inputs[0].axes[axis].size};
    return box;
  }
  bool keeps_input(int) const override { return true; }
  bool keeps_output() const override { return true; }
  double flops(const Box& out, const NodeTypes& types) const override {
    return static_cast<double>(needed(0, out, types).volume());
  }

  ScratchBytes scratch_bytes(Phase phase, const Box& out, const NodeTypes& types,
                             const Numbers& numbers) const override {
    if (phase != Phase::kInputGradient || out.empty()) return 0;
    return Scratch::bytes_of(needed(0, out, types).volume(), at::kBool) +
           Scratch::bytes_of(out.volume(), at::kLong) +
           Scratch::bytes_of(out.volume(), numbers.type);
  }

  void forward(KernelArgs& args) const override {
    if (args.out_box.empty()) return;
    at::Tensor output = args.output.view(args.out_box);
    at::amax_out(output, input_of(args), dims_, /*keepdim=*/true);
  }

  void input_gradient(KernelArgs& args) const override {
    at::Tensor& gradient = args.grad_inputs[0].tensor;
    if (args.out_box.empty() || !gradient.defined()) return;
    const at::Tensor x = input_of(args), dy = args.grad_output.view(args.out_box);
    Scratch scratch(args.scratch);
    at::Tensor largest = scratch.take(x.sizes(), at::kBool);
    at::Tensor winners = scratch.take(dy.sizes(), at::kLong);
    at::Tensor share = scratch.take(dy.sizes(), dy.scalar_type());
    at::eq_out(largest, x, args.output.view(args.out_box));
    at::sum_out(winners, largest, dims_, /*keepdim=*/true);
    at::mul_out(gradient, largest, at::div_out(share, dy, winners));
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    return at::amax(args.inputs[0], dims_, /*keepdim=*/true);
  }

 private:
  at::Tensor input_of(const KernelArgs& args) const {
    return args.inputs[0].view(needed(0, args.out_box, *args.types));
  }

  std::vector<int> axes_;
  std::vector<int64_t> dims_;
};

}  // namespace

ValueId amax(Graph& graph, ValueId x, const std::string& name, const AmaxOptions& options) {
  return graph.add_node(name, std::make_shared<Amax>(options.axes), {x});
}

}  // namespace tessera
