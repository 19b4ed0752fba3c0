#include "tessera/ops/pad.h"

#include <algorithm>

#include "tessera/base/error.h"

namespace tessera {
namespace {

class Pad : public Op {
 public:
  explicit Pad(const PadOptions& options) : options_(options) {}

  std::string kind() const override { return "pad"; }

  ValueType infer_type(std::span<const ValueType> inputs) const override {
    ValueType type = inputs[0];
    const size_t num_spatial = static_cast<size_t>(type.num_spatial());
    if (type.element != Element::kReal)
      throw_error<InvalidInput>("the input holds labels; give real numbers");
    if (options_.low.size() != num_spatial || options_.high.size() != num_spatial)
      throw_error<InvalidInput>(
          "low has {} and high {} entries; give one per spatial axis of {}: {}",
          options_.low.size(), options_.high.size(), to_string(type), num_spatial);
    for (size_t i = 0; i < num_spatial; ++i) {
      Axis& axis = type.axes[type.first_spatial() + i];
      const int64_t low = options_.low[i], high = options_.high[i];
      if (axis.size + std::min<int64_t>(low, 0) + std::min<int64_t>(high, 0) < 1)
        throw_error<InvalidInput>(
            "low {} and high {} crop all of spatial axis {}, whose size is {}; leave at least 1",
            low, high, i, axis.size);
      axis.size += low + high;
    }
    return type;
  }

  Box needed(int, const Box& out, const NodeTypes& types) const override {
    return intersect(shifted(out, types, -1), Box::whole(types.inputs[0].shape()));
  }

  void forward(KernelArgs& args) const override {
    const Box from = needed(0, args.out_box, *args.types);
    at::Tensor rest = args.output.view(args.out_box);
    if (from.empty()) {
      rest.zero_();
      return;
    }
    const Box to = shifted(from, *args.types, 1);
    for (int axis = 0; axis < to.num_axes(); ++axis) {
      const Range& all = args.out_box[axis];
      rest.narrow(axis, 0, to[axis].begin - all.begin).zero_();
      rest.narrow(axis, to[axis].end - all.begin, all.end - to[axis].end).zero_();
      rest = rest.narrow(axis, to[axis].begin - all.begin, to[axis].size());
    }
    rest.copy_(args.inputs[0].view(from));
  }

  void input_gradient(KernelArgs& args) const override {
    const Operand& gradient = args.grad_inputs[0];
    if (!gradient.tensor.defined() || gradient.box.empty()) return;
    gradient.tensor.copy_(args.grad_output.view(shifted(gradient.box, *args.types, 1)));
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    std::vector<int64_t> last_axis_first;
    for (size_t i = options_.low.size(); i-- > 0;) {
      last_axis_first.push_back(options_.low[i]);
      last_axis_first.push_back(options_.high[i]);
    }
    return at::constant_pad_nd(args.inputs[0], last_axis_first, 0);
  }

 private:
  /// From input to output coordinates (sign 1) or back (sign -1).
  Box shifted(const Box& box, const NodeTypes& types, int sign) const {
    const int first = types.inputs[0].first_spatial();
    Box result = box;
    for (size_t i = 0; i < options_.low.size(); ++i)
      result[first + i] = box[first + i].shifted(sign * options_.low[i]);
    return result;
  }

  PadOptions options_;
};

}  // namespace

ValueId pad(Graph& graph, ValueId x, const std::string& name, const PadOptions& options) {
  return graph.add_node(name, std::make_shared<Pad>(options), {x});
}

}  // namespace tessera
