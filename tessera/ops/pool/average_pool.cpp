#include <ATen/Dispatch.h>

#include <memory>

#include "tessera/base/error.h"
#include "tessera/graph/script.h"
#include "tessera/ops/pool/pool_loops.h"

namespace tessera {
namespace {

/// What a window's sum is divided by: a product over the axes, or the override.
class Divisors {
 public:
  Divisors(const PoolPiece& piece, const PoolOptions& options)
      : piece_(piece), override_(options.divisor_override) {
    for (int axis = 0; axis < 3; ++axis)
      for (int64_t o = piece[axis].out.begin; o < piece[axis].out.end; ++o)
        counts_[axis].push_back(count(piece[axis], o, options.count_include_pad));
  }

  /// The divisors of the part's columns.
  template <class T>
  void write(const RowPart& part, T* divisors) const {
    const int64_t first = part.columns.begin - piece_[2].out.begin;
    const int64_t rows =
        counts_[0][part.d - piece_[0].out.begin] * counts_[1][part.h - piece_[1].out.begin];
    for (int64_t i = 0; i < part.columns.size(); ++i)
      divisors[i] = static_cast<T>(override_ > 0 ? override_ : rows * counts_[2][first + i]);
  }

 private:
  /// PyTorch counts padding, but not what ceil mode reads beyond it.
  static int64_t count(const PoolAxis& axis, int64_t output, bool include_padding) {
    if (!include_padding) return axis.taps_inside(output).size();
    const int64_t begin = axis.tap(output, 0);
    return std::min(begin + axis.kernel, axis.input_size + axis.padding) - begin;
  }

  const PoolPiece& piece_;
  int64_t override_;
  std::array<std::vector<int64_t>, 3> counts_;
};

template <int64_t kStride, class T>
void add_taps(const T* in, int64_t stride, int64_t n, T* sums) {
  if constexpr (kStride > 0) stride = kStride;
  for (int64_t i = 0; i < n; ++i) sums[i] += in[i * stride];
}

template <class T>
void average_forward(const PoolPiece& piece, const Divisors& divisors, const ImageView<const T>& x,
                     const ImageView<T>& y) {
  const int64_t stride = piece[2].stride;
  const auto add = stride == 1 ? add_taps<1, T> : stride == 2 ? add_taps<2, T> : add_taps<0, T>;
  for_row_parts(piece, y.num_planes(), [&](const RowPart& part) {
    T sums[RowPart::kColumns], divisor[RowPart::kColumns];
    std::fill_n(sums, part.columns.size(), T(0));
    const T* plane = x.plane(part.plane);
    for_taps(part, [&](int64_t, int64_t d, int64_t h, int64_t w, const Range& outputs) {
      add(plane + d * x.strides[2] + h * x.strides[3] + w, stride, outputs.size(),
          sums + (outputs.begin - part.columns.begin));
    });
    divisors.write(part, divisor);
    T* out = y.plane(part.plane) + part.offset(y.strides);
    for (int64_t i = 0; i < part.columns.size(); ++i) out[i] = sums[i] / divisor[i];
  });
}

template <class T>
void average_backward(const PoolPiece& piece, const Divisors& divisors,
                      const ImageView<const T>& grad_y, const ImageView<T>& grad_x) {
  const int64_t stride = piece[2].stride;
  for_zeroed_planes(grad_x, [&](int64_t plane) {
    for_row_parts_of_plane(piece, plane, [&](const RowPart& part) {
      const T* dy = grad_y.plane(plane) + part.offset(grad_y.strides);
      T shares[RowPart::kColumns], divisor[RowPart::kColumns];
      divisors.write(part, divisor);
      for (int64_t i = 0; i < part.columns.size(); ++i) shares[i] = dy[i] / divisor[i];
      for_taps(part, [&](int64_t, int64_t d, int64_t h, int64_t w, const Range& outputs) {
        T* dx = grad_x.plane(plane) + d * grad_x.strides[2] + h * grad_x.strides[3] + w;
        const T* share = shares + (outputs.begin - part.columns.begin);
        for (int64_t i = 0; i < outputs.size(); ++i) dx[i * stride] += share[i];
      });
    });
  });
}

class AveragePool final : public Op {
 public:
  explicit AveragePool(const PoolOptions& options) : geometry_(options) {}

  std::string kind() const override { return "average_pool"; }
  std::string settings() const override { return geometry_.settings(); }

  ValueType infer_type(std::span<const ValueType> inputs) const override {
    for (int64_t dilation : geometry_.options().dilation)
      if (dilation != 1)
        throw_error<InvalidInput>("dilation {} must be 1; max pooling has dilation", dilation);
    const ValueType output = geometry_.infer_type(inputs[0]);
    if (inputs[0].num_spatial() == 3) check_kernel_fits(inputs[0]);
    return output;
  }
  /// Only PyTorch's 3-D average pooling wants the kernel to fit without the padding.
  void check_kernel_fits(const ValueType& input) const {
    const std::vector<int64_t> kernel = geometry_.kernel(3);
    for (int i = 0; i < 3; ++i)
      if (kernel[i] > input.axes[2 + i].size)
        throw_error<InvalidInput>("kernel {} is larger than the size {} of spatial axis {}",
                                  kernel[i], input.axes[2 + i].size, i);
  }
  Box needed(int, const Box& out, const NodeTypes& types) const override {
    return geometry_.needed(out, types);
  }
  double flops(const Box& out, const NodeTypes& types) const override {
    return static_cast<double>(out.volume() * (geometry_.kernel_volume(types) + 1));
  }

  void forward(KernelArgs& args) const override {
    if (args.out_box.empty()) return;
    const at::Tensor x = read_rows(args.inputs[0].view(needed(0, args.out_box, *args.types)));
    const PoolPiece piece = geometry_.piece(args.out_box, *args.types);
    const Divisors divisors(piece, geometry_.options());
    write_rows(args.output.view(args.out_box), [&](const at::Tensor& y) {
      AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "average_pool", [&] {
        average_forward(piece, divisors, ImageView<const scalar_t>(x), ImageView<scalar_t>(y));
      });
    });
  }

  void input_gradient(KernelArgs& args) const override {
    if (args.out_box.empty() || !args.grad_inputs[0].tensor.defined()) return;
    const at::Tensor grad_y = read_rows(args.grad_output.view(args.out_box));
    const PoolPiece piece = geometry_.piece(args.out_box, *args.types);
    const Divisors divisors(piece, geometry_.options());
    write_rows(args.grad_inputs[0].tensor, [&](const at::Tensor& grad_x) {
      AT_DISPATCH_FLOATING_TYPES(grad_y.scalar_type(), "average_pool", [&] {
        average_backward(piece, divisors, ImageView<const scalar_t>(grad_y),
                         ImageView<scalar_t>(grad_x));
      });
    });
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    at::Tensor x = args.inputs[0];
    const int num_spatial = static_cast<int>(x.dim()) - 2;
    std::vector<int64_t> kernel = geometry_.kernel(num_spatial);
    std::vector<int64_t> stride = geometry_.stride(num_spatial);
    std::vector<int64_t> padding = geometry_.padding(num_spatial);
    if (num_spatial == 1) {  // at::avg_pool1d takes no divisor; a signal is an image of height 1
      x = x.unsqueeze(2);
      kernel.insert(kernel.begin(), 1);
      stride.insert(stride.begin(), 1);
      padding.insert(padding.begin(), 0);
    }
    const PoolOptions& options = geometry_.options();
    const auto average = [&](auto... divisor) {
      return num_spatial == 3 ? at::avg_pool3d(x, kernel, stride, padding, options.ceil_mode,
                                               options.count_include_pad, divisor...)
                              : at::avg_pool2d(x, kernel, stride, padding, options.ceil_mode,
                                               options.count_include_pad, divisor...);
    };
    const at::Tensor y =
        options.divisor_override > 0 ? average(options.divisor_override) : average();
    return num_spatial == 1 ? y.squeeze(2) : y;
  }

  /// None for a signal with a divisor of its own, which PyTorch does not have.
  std::optional<std::string> script(const ScriptArgs& args) const override {
    const int num_spatial = args.types->inputs[0].num_spatial();
    const PoolOptions& options = geometry_.options();
    std::vector<std::string> arguments{args.inputs[0],
                                       script_list(geometry_.kernel(num_spatial)),
                                       script_list(geometry_.stride(num_spatial)),
                                       script_list(geometry_.padding(num_spatial)),
                                       script_bool(options.ceil_mode),
                                       script_bool(options.count_include_pad)};
    if (options.divisor_override > 0) {
      if (num_spatial == 1) return std::nullopt;
      arguments.push_back(std::to_string(options.divisor_override));
    }
    return script_call(fmt::format("torch.avg_pool{}d", num_spatial), arguments);
  }

 private:
  PoolGeometry geometry_;
};

}  // namespace

ValueId average_pool(Graph& graph, ValueId x, const std::string& name, const PoolOptions& options) {
  return graph.add_node(name, std::make_shared<AveragePool>(options), {x});
}

}  // namespace tessera
