#include "tessera/ops/pool/max_unpool.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include <memory>

#include "tessera/base/error.h"
#include "tessera/geometry/divide.h"
#include "tessera/kernels/cpu/image_view.h"
#include "tessera/ops/pool/pool_geometry.h"

namespace tessera {
namespace {

/// Any strides, also along rows.
template <class T>
T& element(const ImageView<T>& view, T* plane, int64_t d, int64_t h, int64_t w) {
  return plane[d * view.strides[2] + h * view.strides[3] + w * view.strides[4]];
}

/// Where a window has its maximum, along D, H, W.
using Place = std::array<int64_t, 3>;

/// The first of equal values wins, and a NaN always does: max pooling's rules.
template <class T>
Place place_of_maximum(const PoolPiece& piece, const ImageView<const T>& x, const T* plane,
                       int64_t d, int64_t h, int64_t w) {
  const auto& [depth, height, width] = piece;
  const Range taps_d = depth.taps_inside(d), taps_h = height.taps_inside(h),
              taps_w = width.taps_inside(w);
  Place place{-1, -1, -1};
  T best{};
  for (int64_t kd = taps_d.begin; kd < taps_d.end; ++kd)
    for (int64_t kh = taps_h.begin; kh < taps_h.end; ++kh)
      for (int64_t kw = taps_w.begin; kw < taps_w.end; ++kw) {
        const Place at{depth.tap(d, kd), height.tap(h, kh), width.tap(w, kw)};
        const T value = element(x, plane, at[0] - depth.in.begin, at[1] - height.in.begin,
                                at[2] - width.in.begin);
        if (place[0] >= 0 && !(value > best) && value == value) continue;
        best = value;
        place = at;
      }
  return place;
}

/// Calls visit(d, h, w, index in the piece) for the pooled pixels of a plane, in scan order.
template <class Visit>
void for_pooled_pixels(const PoolPiece& piece, int64_t plane, Visit&& visit) {
  const auto& [depth, height, width] = piece;
  int64_t index = plane * depth.out.size() * height.out.size() * width.out.size();
  for (int64_t d = depth.out.begin; d < depth.out.end; ++d)
    for (int64_t h = height.out.begin; h < height.out.end; ++h)
      for (int64_t w = width.out.begin; w < width.out.end; ++w) visit(d, h, w, index++);
}

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
    output.zero_();
    const Box windows = windows_at(args.out_box, *args.types);
    if (windows.empty()) return;
    const PoolPiece piece = geometry_.piece(windows, pooling(*args.types));
    const at::Tensor values = with_five_axes(args.inputs[0].view(windows));
    const at::Tensor x = with_five_axes(args.inputs[1].view(needed(1, args.out_box, *args.types)));
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "max_unpool", [&] {
      place_values<scalar_t>(piece, args.out_box, values, x, with_five_axes(output),
                             args.saved.data_ptr<int32_t>());
    });
  }

  void input_gradient(KernelArgs& args) const override {
    const at::Tensor& gradient = args.grad_inputs[0].tensor;
    const Box windows = windows_at(args.out_box, *args.types);
    if (windows.empty() || !gradient.defined()) return;
    const PoolPiece piece = geometry_.piece(windows, pooling(*args.types));
    const at::Tensor grad_output = with_five_axes(args.grad_output.view(args.out_box));
    AT_DISPATCH_FLOATING_TYPES(gradient.scalar_type(), "max_unpool", [&] {
      collect_gradients<scalar_t>(piece, grad_output, with_five_axes(gradient),
                                  args.saved.data_ptr<int32_t>());
    });
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

  template <class T>
  static void place_values(const PoolPiece& piece, const Box& out, const at::Tensor& values,
                           const at::Tensor& pooled, const at::Tensor& output, int32_t* places) {
    const ImageView<const T> y(values), x(pooled);
    const ImageView<T> target(output);
    Place first{0, 0, 0}, size{1, 1, 1};
    for (int axis = 2; axis < out.num_axes(); ++axis) {
      first[axis + 3 - out.num_axes()] = out[axis].begin;
      size[axis + 3 - out.num_axes()] = out[axis].size();
    }
    at::parallel_for(0, y.num_planes(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane)
        for_pooled_pixels(piece, plane, [&](int64_t d, int64_t h, int64_t w, int64_t index) {
          Place at = place_of_maximum(piece, x, x.plane(plane), d, h, w);
          bool inside = true;
          for (int axis = 0; axis < 3; ++axis) {
            at[axis] -= first[axis];
            inside = inside && at[axis] >= 0 && at[axis] < size[axis];
          }
          places[index] =
              inside ? static_cast<int32_t>((at[0] * size[1] + at[1]) * size[2] + at[2]) : -1;
          if (!inside) return;
          element(target, target.plane(plane), at[0], at[1], at[2]) =
              element(y, y.plane(plane), d - piece[0].out.begin, h - piece[1].out.begin,
                      w - piece[2].out.begin);
        });
    });
  }

  template <class T>
  static void collect_gradients(const PoolPiece& piece, const at::Tensor& grad_output,
                                const at::Tensor& gradient, const int32_t* places) {
    const ImageView<const T> dy(grad_output);
    const ImageView<T> dx(gradient);
    at::parallel_for(0, dx.num_planes(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane)
        for_pooled_pixels(piece, plane, [&](int64_t d, int64_t h, int64_t w, int64_t index) {
          const int64_t place = places[index];
          const int64_t row = place / dy.sizes[4];
          element(dx, dx.plane(plane), d - piece[0].out.begin, h - piece[1].out.begin,
                  w - piece[2].out.begin) = place < 0
                                                ? T(0)
                                                : element(dy, dy.plane(plane), row / dy.sizes[3],
                                                          row % dy.sizes[3], place % dy.sizes[4]);
        });
    });
  }

  PoolGeometry geometry_;
};

}  // namespace

ValueId max_unpool(Graph& graph, ValueId values, ValueId pooled, const std::string& name,
                   const PoolOptions& options) {
  return graph.add_node(name, std::make_shared<MaxUnpool>(options), {values, pooled});
}

}  // namespace tessera
