#include "tessera/ops/shape/unit_axes.h"

#include "tessera/base/error.h"

namespace tessera {
namespace {

constexpr int kMaxSpatial = 3;

Box with_axis(const Box& box, int added, const Range& range) {
  Box result;
  for (int axis = 0; axis <= box.num_axes(); ++axis) {
    if (axis == added) result.push_back(range);
    if (axis < box.num_axes()) result.push_back(box[axis]);
  }
  return result;
}

/// The two differ in types and boxes; the elements are the same, in the same order.
class UnitAxis : public Op {
 public:
  explicit UnitAxis(int axis) : axis_(axis) {}

  std::string settings() const override { return fmt::format("axis {}", axis_); }
  bool cheap_to_recompute() const override { return true; }
  double flops(const Box&, const NodeTypes&) const override { return 0; }

  void forward(KernelArgs& args) const override {
    if (args.out_box.empty()) return;
    const Box from = needed(0, args.out_box, *args.types);
    args.output.view(args.out_box).copy_(to_output(args.inputs[0].view(from)));
  }

  void input_gradient(KernelArgs& args) const override {
    const at::Tensor& gradient = args.grad_inputs[0].tensor;
    if (!gradient.defined() || args.out_box.empty()) return;
    to_output(gradient).copy_(args.grad_output.view(args.out_box));
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    return to_output(args.inputs[0]);
  }

 protected:
  /// The view of an input that has the axes of the output.
  virtual at::Tensor to_output(const at::Tensor& input) const = 0;

  static void check_real(const ValueType& type) {
    if (type.element != Element::kReal)
      throw_error<InvalidInput>("the input holds labels; give real numbers");
  }

  int axis_;
};

class Squeeze final : public UnitAxis {
 public:
  using UnitAxis::UnitAxis;

  std::string kind() const override { return "squeeze"; }

  ValueType infer_type(std::span<const ValueType> inputs) const override {
    ValueType type = inputs[0];
    check_real(type);
    if (axis_ < 1 || axis_ >= type.num_axes() || type.axes[axis_].kind == AxisKind::kPart)
      throw_error<InvalidInput>("axis {} of {}; drop the channels or a spatial axis, from 1 to {}",
                                axis_, to_string(type), type.num_axes() - 1);
    if (type.axes[axis_].size != 1)
      throw_error<InvalidInput>("axis {} of {} has size {}; only size 1 can be dropped", axis_,
                                to_string(type), type.axes[axis_].size);
    type.axes.erase(type.axes.begin() + axis_);
    return type;
  }

  Box needed(int, const Box& out, const NodeTypes&) const override {
    return with_axis(out, axis_, {0, 1});
  }

 private:
  at::Tensor to_output(const at::Tensor& input) const override { return input.squeeze(axis_); }
};

class Unsqueeze final : public UnitAxis {
 public:
  using UnitAxis::UnitAxis;

  std::string kind() const override { return "unsqueeze"; }

  ValueType infer_type(std::span<const ValueType> inputs) const override {
    ValueType type = inputs[0];
    check_real(type);
    if (axis_ < 1 || axis_ > type.num_axes())
      throw_error<InvalidInput>("axis {} for {}; give 1 to {}", axis_, to_string(type),
                                type.num_axes());
    const bool has_channels = type.num_axes() > 1 && type.axes[1].kind == AxisKind::kChannel;
    if (axis_ == 1 && has_channels)
      throw_error<InvalidInput>(
          "axis 1 of {} would stand before the channels; give 2 to {}, for a spatial axis",
          to_string(type), type.num_axes());
    if (axis_ == 1) {
      type.axes.insert(type.axes.begin() + 1, {AxisKind::kChannel, 1, -1, {}});
      return type;
    }
    type.axes.insert(type.axes.begin() + axis_, {AxisKind::kSpatial, 1, -1, {}});
    int num_spatial = 0;
    for (Axis& axis : type.axes)
      if (axis.kind == AxisKind::kSpatial) axis.spatial_index = num_spatial++;
    if (num_spatial > kMaxSpatial)
      throw_error<InvalidInput>("{} has {} spatial axes already, the most that a value can have",
                                to_string(inputs[0]), kMaxSpatial);
    return type;
  }

  Box needed(int, const Box& out, const NodeTypes&) const override {
    return without_axis(out, axis_);
  }

 private:
  at::Tensor to_output(const at::Tensor& input) const override { return input.unsqueeze(axis_); }
};

}  // namespace

ValueId squeeze(Graph& graph, ValueId x, const std::string& name, int axis) {
  return graph.add_node(name, std::make_shared<Squeeze>(axis), {x});
}

ValueId unsqueeze(Graph& graph, ValueId x, const std::string& name, int axis) {
  return graph.add_node(name, std::make_shared<Unsqueeze>(axis), {x});
}

}  // namespace tessera
