#include <ATen/Dispatch.h>

#include <limits>
#include <memory>
#include <type_traits>

#include "tessera/graph/script.h"
#include "tessera/ops/pool/pool_loops.h"

namespace tessera {
namespace {

/// Index of the chosen tap while a row is scanned: as wide as the values, so that both are blended
/// in the same vector lanes. -1: none yet.
template <class T>
using Choice = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;

/// The first of equal values wins, and a NaN always does: PyTorch's rules.
template <int64_t kStride, class T>
void take_larger(const T* in, int64_t stride, int64_t n, Choice<T> tap, T* best,
                 Choice<T>* choice) {
  if constexpr (kStride > 0) stride = kStride;
  for (int64_t i = 0; i < n; ++i) {
    const T value = in[i * stride];
    const bool take = (value > best[i]) | (value != value) | (choice[i] < 0);
    best[i] = take ? value : best[i];
    choice[i] = take ? tap : choice[i];
  }
}

template <class T, class Code>
void max_pool_forward(const PoolPiece& piece, const ImageView<const T>& x, const ImageView<T>& y,
                      Code* codes) {
  const int64_t stride = piece[2].stride;
  const auto take = stride == 1   ? take_larger<1, T>
                    : stride == 2 ? take_larger<2, T>
                                  : take_larger<0, T>;
  for_row_parts(piece, y.num_planes(), [&](const RowPart& part) {
    const int64_t columns = part.columns.size();
    T best[RowPart::kColumns];
    Choice<T> choice[RowPart::kColumns];
    std::fill_n(best, columns, -std::numeric_limits<T>::infinity());
    std::fill_n(choice, columns, Choice<T>{-1});
    const T* plane = x.plane(part.plane);
    for_taps(part, [&](int64_t tap, int64_t d, int64_t h, int64_t w, const Range& outputs) {
      const T* in = plane + d * x.strides[2] + h * x.strides[3] + w;
      const int64_t first = outputs.begin - part.columns.begin;
      take(in, stride, outputs.size(), static_cast<Choice<T>>(tap), best + first, choice + first);
    });
    std::copy_n(best, columns, y.plane(part.plane) + part.offset(y.strides));
    std::transform(choice, choice + columns, codes + part.index(),
                   [](Choice<T> tap) { return static_cast<Code>(tap); });
  });
}

/// Distance in memory from a window's first tap to each of its taps.
std::vector<int64_t> tap_offsets(const PoolPiece& piece, const std::array<int64_t, 5>& strides) {
  const auto& [depth, height, width] = piece;
  std::vector<int64_t> offsets;
  for (int64_t kd = 0; kd < depth.kernel; ++kd)
    for (int64_t kh = 0; kh < height.kernel; ++kh)
      for (int64_t kw = 0; kw < width.kernel; ++kw)
        offsets.push_back(kd * depth.dilation * strides[2] + kh * height.dilation * strides[3] +
                          kw * width.dilation);
  return offsets;
}

template <class T, class Code>
void max_pool_backward(const PoolPiece& piece, const ImageView<const T>& grad_y, const Code* codes,
                       const ImageView<T>& grad_x) {
  const auto& [depth, height, width] = piece;
  const std::vector<int64_t> offsets = tap_offsets(piece, grad_x.strides);
  for_zeroed_planes(grad_x, [&](int64_t plane) {
    for_row_parts_of_plane(piece, plane, [&](const RowPart& part) {
      const T* dy = grad_y.plane(plane) + part.offset(grad_y.strides);
      const Code* code = codes + part.index();
      T* dx = grad_x.plane(plane);
      // The first tap of the first window, which may lie in the padding.
      int64_t window = (depth.tap(part.d, 0) - depth.in.begin) * grad_x.strides[2] +
                       (height.tap(part.h, 0) - height.in.begin) * grad_x.strides[3] +
                       width.tap(part.columns.begin, 0) - width.in.begin;
      for (int64_t i = 0; i < part.columns.size(); ++i, window += width.stride)
        dx[window + offsets[code[i]]] += dy[i];
    });
  });
}

class MaxPool final : public Op {
 public:
  explicit MaxPool(const PoolOptions& options) : geometry_(options) {}

  std::string kind() const override { return "max_pool"; }
  std::string settings() const override { return geometry_.settings(); }

  ValueType infer_type(std::span<const ValueType> inputs) const override {
    return geometry_.infer_type(inputs[0]);
  }
  Box needed(int, const Box& out, const NodeTypes& types) const override {
    return geometry_.needed(out, types);
  }
  /// For each output, the tap of its window that holds the maximum.
  Saved saved(const Box& out, const NodeTypes& types) const override {
    return {geometry_.kernel_volume(types) <= 255 ? at::kByte : at::kInt, out.volume()};
  }
  double flops(const Box& out, const NodeTypes& types) const override {
    return static_cast<double>(out.volume() * geometry_.kernel_volume(types));
  }

  void forward(KernelArgs& args) const override {
    if (args.out_box.empty()) return;
    const at::Tensor x = read_rows(args.inputs[0].view(needed(0, args.out_box, *args.types)));
    const PoolPiece piece = geometry_.piece(args.out_box, *args.types);
    write_rows(args.output.view(args.out_box), [&](const at::Tensor& y) {
      dispatch(x, args.saved, [&]<class T>(auto* codes) {
        max_pool_forward(piece, ImageView<const T>(x), ImageView<T>(y), codes);
      });
    });
  }

  void input_gradient(KernelArgs& args) const override {
    if (args.out_box.empty() || !args.grad_inputs[0].tensor.defined()) return;
    const at::Tensor grad_y = read_rows(args.grad_output.view(args.out_box));
    const PoolPiece piece = geometry_.piece(args.out_box, *args.types);
    write_rows(args.grad_inputs[0].tensor, [&](const at::Tensor& grad_x) {
      dispatch(grad_y, args.saved, [&]<class T>(const auto* codes) {
        max_pool_backward(piece, ImageView<const T>(grad_y), codes, ImageView<T>(grad_x));
      });
    });
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    const at::Tensor& x = args.inputs[0];
    const int num_spatial = static_cast<int>(x.dim()) - 2;
    const auto pool = num_spatial == 1   ? at::max_pool1d
                      : num_spatial == 2 ? at::max_pool2d
                                         : at::max_pool3d;
    return pool(x, geometry_.kernel(num_spatial), geometry_.stride(num_spatial),
                geometry_.padding(num_spatial), geometry_.dilation(num_spatial),
                geometry_.options().ceil_mode);
  }

  std::optional<std::string> script(const ScriptArgs& args) const override {
    const int num_spatial = args.types->inputs[0].num_spatial();
    return script_call(
        fmt::format("torch.max_pool{}d", num_spatial),
        {args.inputs[0], script_list(geometry_.kernel(num_spatial)),
         script_list(geometry_.stride(num_spatial)), script_list(geometry_.padding(num_spatial)),
         script_list(geometry_.dilation(num_spatial)), script_bool(geometry_.options().ceil_mode)});
  }

 private:
  /// Calls run.template operator()<scalar type>(pointer to the saved codes).
  template <class Run>
  static void dispatch(const at::Tensor& real, const at::Tensor& saved, Run&& run) {
    AT_DISPATCH_FLOATING_TYPES(real.scalar_type(), "max_pool", [&] {
      if (saved.scalar_type() == at::kByte)
        run.template operator()<scalar_t>(saved.data_ptr<uint8_t>());
      else
        run.template operator()<scalar_t>(saved.data_ptr<int32_t>());
    });
  }

  PoolGeometry geometry_;
};

}  // namespace

ValueId max_pool(Graph& graph, ValueId x, const std::string& name, const PoolOptions& options) {
  return graph.add_node(name, std::make_shared<MaxPool>(options), {x});
}

}  // namespace tessera
