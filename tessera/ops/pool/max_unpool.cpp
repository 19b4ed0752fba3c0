#include "tessera/ops/pool/max_unpool.h"

#include <array>
#include <memory>

#include "tessera/base/error.h"
#include "tessera/geometry/divide.h"
#include "tessera/ops/pool/pool_geometry.h"

namespace tessera {
namespace {

class MaxUnpool final : public Op {
 public:
  explicit MaxUnpool(const PoolOptions& options) : geometry_(options) {}

  std::string kind() const override { return "max_unpool"; }
  std::string settings() const override { return geometry_.settings(); }

  ValueType infer_type(std::span<const ValueType> inputs) const override {
    const ValueType pooled = geometry_.infer_type(inputs[1]);
    if (inputs[0].element != Element::kReal || inputs[0].shape() != pooled.shape())
      throw_error<InvalidInput>("the values are {}; the pooling of {} has the shape {}",
                                to_string(inputs[0]), to_string(inputs[1]), to_string(pooled));
    return inputs[1];
  }

  Box needed(int input, const Box& out, const NodeTypes& types) const override {
    const Box windows = windows_at(out, types);
    if (input == 0 || windows.empty()) return windows;
    return geometry_.needed(windows, pooling(types));
  }
  bool differentiable(int input) const override { return input == 0; }
  /// For each value, where it goes in the piece's plane; -1: to another piece.
  Saved saved(const Box& out, const NodeTypes& types) const override {
    return {at::kInt, windows_at(out, types).volume()};
  }
  double flops(const Box& out, const NodeTypes& types) const override {
    return static_cast<double>(windows_at(out, types).volume() *
                               geometry_.kernel_volume(pooling(types)));
  }

  void forward(KernelArgs& args) const override {
    if (args.out_box.empty()) return;
    const at::Tensor output = args.output.view(args.out_box);
    const Box windows = windows_at(args.out_box, *args.types);
    if (windows.empty()) {
      output.zero_();
      return;
    }
    unpool_maxima(geometry_.piece(windows, pooling(*args.types)), space_of(args.out_box),
                  args.inputs[0].view(windows),
                  args.inputs[1].view(needed(1, args.out_box, *args.types)), output, args.saved);
  }

  void input_gradient(KernelArgs& args) const override {
    const Box windows = windows_at(args.out_box, *args.types);
    if (windows.empty() || !args.grad_inputs[0].tensor.defined()) return;
    unpool_maxima_gradient(geometry_.piece(windows, pooling(*args.types)),
                           args.grad_output.view(args.out_box), args.saved,
                           args.grad_inputs[0].tensor);
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    const at::Tensor &values = args.inputs[0], x = args.inputs[1].detach();
    const int num_spatial = static_cast<int>(x.dim()) - 2;
    const auto pool = num_spatial == 1   ? at::max_pool1d_with_indices
                      : num_spatial == 2 ? at::max_pool2d_with_indices
                                         : at::max_pool3d_with_indices;
    const at::Tensor places =
        std::get<1>(pool(x, geometry_.kernel(num_spatial), geometry_.stride(num_spatial),
                         geometry_.padding(num_spatial), geometry_.dilation(num_spatial),
                         geometry_.options().ceil_mode));
    return at::zeros_like(x)
        .flatten(2)
        .scatter(2, places.flatten(2), values.flatten(2))
        .view(x.sizes());
  }

 private:
  /// The pooling whose choices are undone.
  static NodeTypes pooling(const NodeTypes& types) { return {{types.inputs[1]}, types.inputs[0]}; }

  /// The ranges of a box along D, H, W.
  static std::array<Range, 3> space_of(const Box& box) {
    std::array<Range, 3> space{Range{0, 1}, Range{0, 1}, Range{0, 1}};
    for (int axis = 2; axis < box.num_axes(); ++axis) space[axis + 3 - box.num_axes()] = box[axis];
    return space;
  }

  /// The pooled pixels whose windows reach into a box of the output.
  Box windows_at(const Box& out, const NodeTypes& types) const {
    const ValueType& pooled = types.inputs[0];
    if (out.empty()) return Box(std::vector<Range>(out.num_axes()));
    Box box = out;
    for (int axis = 2; axis < out.num_axes(); ++axis) {
      const Window window = geometry_.window(axis - 2, pooled.num_spatial());
      const int64_t reach = (window.kernel - 1) * window.dilation;
      const Range reading{ceil_div(out[axis].begin + window.pad_low - reach, window.stride),
                          ceil_div(out[axis].end + window.pad_low, window.stride)};
      box[axis] = intersect(reading, Range{0, pooled.axes[axis].size});
    }
    return box;
  }

  PoolGeometry geometry_;
};

}  // namespace

ValueId max_unpool(Graph& graph, ValueId values, ValueId pooled, const std::string& name,
                   const PoolOptions& options) {
  return graph.add_node(name, std::make_shared<MaxUnpool>(options), {values, pooled});
}

}  // namespace tessera
