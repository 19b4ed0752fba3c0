#include "tessera/ops/pool/adaptive_pool.h"

#include <ATen/Dispatch.h>

#include <cmath>
#include <limits>

#include "tessera/base/error.h"
#include "tessera/graph/script.h"
#include "tessera/kernels/cpu/row_sum.h"
#include "tessera/ops/pool/adaptive_geometry.h"
#include "tessera/ops/pool/pool_loops.h"
#include "tessera/ops/pool/spatial_reduction.h"

namespace tessera {
namespace {

/// Calls visit(first element, offset) for the rows of the image in the windows of an output row, in
/// scan order; `offset` is the row's place in the window, in rows.
template <class T, class Visit>
void for_window_rows(const AdaptiveRow& row, const ImageView<T>& image, Visit&& visit) {
  int64_t offset = 0;
  for (int64_t d = row.depth.begin; d < row.depth.end; ++d)
    for (int64_t h = row.height.begin; h < row.height.end; ++h)
      visit(image.plane(row.plane) + d * image.strides[2] + h * image.strides[3], offset++);
}

template <class T>
void average_forward(const AdaptivePiece& piece, const ImageView<const T>& x,
                     const ImageView<T>& y) {
  const std::vector<Range> columns = column_windows(piece);
  for_adaptive_rows(piece, y.num_planes(), [&](const AdaptiveRow& row, int64_t) {
    std::vector<double> sums(columns.size(), 0);
    for_window_rows(row, x, [&](const T* in, int64_t) {
      for (size_t i = 0; i < columns.size(); ++i)
        sums[i] += sum_row(in + columns[i].begin, columns[i].size());
    });
    T* out = y.plane(row.plane) + row.offset(y.strides);
    const int64_t rows = row.depth.size() * row.height.size();
    for (size_t i = 0; i < columns.size(); ++i)
      out[i] = static_cast<T>(sums[i] / static_cast<double>(rows * columns[i].size()));
  });
}

template <class T>
void average_backward(const AdaptivePiece& piece, const ImageView<const T>& grad_y,
                      const ImageView<T>& grad_x) {
  const std::vector<Range> columns = column_windows(piece);
  for_zeroed_planes(grad_x, [&](int64_t plane) {
    for_adaptive_rows_of_plane(piece, plane, [&](const AdaptiveRow& row, int64_t) {
      const T* dy = grad_y.plane(plane) + row.offset(grad_y.strides);
      const int64_t rows = row.depth.size() * row.height.size();
      std::vector<T> shares(columns.size());
      for (size_t i = 0; i < columns.size(); ++i)
        shares[i] = dy[i] / static_cast<T>(rows * columns[i].size());
      for_window_rows(row, grad_x, [&](T* dx, int64_t) {
        for (size_t i = 0; i < columns.size(); ++i)
          for (int64_t c = columns[i].begin; c < columns[i].end; ++c) dx[c] += shares[i];
      });
    });
  });
}

/// The first of equal values wins, and a NaN always does: PyTorch's rules. A code is the place in
/// the window, in scan order.
template <class T, class Code>
void max_forward(const AdaptivePiece& piece, const ImageView<const T>& x, const ImageView<T>& y,
                 Code* codes) {
  const std::vector<Range> columns = column_windows(piece);
  for_adaptive_rows(piece, y.num_planes(), [&](const AdaptiveRow& row, int64_t first) {
    T* best = y.plane(row.plane) + row.offset(y.strides);
    Code* choice = codes + first;
    std::fill_n(best, columns.size(), -std::numeric_limits<T>::infinity());
    std::fill_n(choice, columns.size(), Code{0});
    for_window_rows(row, x, [&](const T* in, int64_t offset) {
      for (size_t i = 0; i < columns.size(); ++i)
        for (int64_t c = columns[i].begin; c < columns[i].end; ++c) {
          if (!(in[c] > best[i] || std::isnan(in[c]))) continue;
          best[i] = in[c];
          choice[i] = static_cast<Code>(offset * columns[i].size() + c - columns[i].begin);
        }
    });
  });
}

template <class T, class Code>
void max_backward(const AdaptivePiece& piece, const ImageView<const T>& grad_y, const Code* codes,
                  const ImageView<T>& grad_x) {
  const std::vector<Range> columns = column_windows(piece);
  for_zeroed_planes(grad_x, [&](int64_t plane) {
    for_adaptive_rows_of_plane(piece, plane, [&](const AdaptiveRow& row, int64_t first) {
      const T* dy = grad_y.plane(plane) + row.offset(grad_y.strides);
      for (size_t i = 0; i < columns.size(); ++i) {
        const int64_t place = codes[first + static_cast<int64_t>(i)];
        const int64_t window_row = place / columns[i].size();
        const int64_t d = row.depth.begin + window_row / row.height.size();
        const int64_t h = row.height.begin + window_row % row.height.size();
        const int64_t c = columns[i].begin + place % columns[i].size();
        grad_x.plane(plane)[d * grad_x.strides[2] + h * grad_x.strides[3] + c] += dy[i];
      }
    });
  });
}

/// Calls run(from, to) with views of contiguous rows.
template <class Run>
void on_images(const at::Tensor& from, const at::Tensor& to, Run&& run) {
  const at::Tensor read = read_rows(from);
  write_rows(to, [&](const at::Tensor& written) {
    AT_DISPATCH_FLOATING_TYPES(read.scalar_type(), "adaptive_pool", [&] {
      run(ImageView<const scalar_t>(read), ImageView<scalar_t>(written));
    });
  });
}

/// Calls run(pointer to the saved codes).
template <class Run>
void on_codes(const at::Tensor& saved, Run&& run) {
  if (saved.scalar_type() == at::kByte)
    run(saved.data_ptr<uint8_t>());
  else
    run(saved.data_ptr<int32_t>());
}

class AdaptivePool : public Op {
 public:
  explicit AdaptivePool(const AdaptivePoolOptions& options) : geometry_(options) {}

  std::string settings() const override { return geometry_.settings(); }
  ValueType infer_type(std::span<const ValueType> inputs) const override {
    return geometry_.infer_type(inputs[0]);
  }
  Box needed(int, const Box& out, const NodeTypes& types) const override {
    return geometry_.needed(out, types);
  }
  double flops(const Box& out, const NodeTypes& types) const override {
    return static_cast<double>(needed(0, out, types).volume());
  }

 protected:
  AdaptivePiece piece(const KernelArgs& args) const {
    return geometry_.piece(args.out_box, *args.types);
  }
  at::Tensor input(const KernelArgs& args) const {
    return args.inputs[0].view(needed(0, args.out_box, *args.types));
  }
  static bool wants_gradient(const KernelArgs& args) {
    return !args.out_box.empty() && args.grad_inputs[0].tensor.defined();
  }
  Shape output_space(const at::Tensor& x) const {
    return geometry_.output_space(x.sizes().slice(2).vec());
  }

  AdaptiveGeometry geometry_;
};

class AdaptiveAveragePool final : public AdaptivePool {
 public:
  using AdaptivePool::AdaptivePool;

  std::string kind() const override { return "adaptive_average_pool"; }

  void forward(KernelArgs& args) const override {
    if (args.out_box.empty()) return;
    on_images(input(args), args.output.view(args.out_box),
              [&](const auto& x, const auto& y) { average_forward(piece(args), x, y); });
  }

  void input_gradient(KernelArgs& args) const override {
    if (!wants_gradient(args)) return;
    on_images(args.grad_output.tensor, args.grad_inputs[0].tensor,
              [&](const auto& dy, const auto& dx) { average_backward(piece(args), dy, dx); });
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    const at::Tensor& x = args.inputs[0];
    const Shape size = output_space(x);
    if (size.size() == 1) return at::adaptive_avg_pool1d(x, size);
    return size.size() == 2 ? at::adaptive_avg_pool2d(x, size) : at::adaptive_avg_pool3d(x, size);
  }

  std::optional<std::string> script(const ScriptArgs& args) const override {
    const int num_spatial = args.types->inputs[0].num_spatial();
    std::vector<std::string> sizes;
    const Shape named = geometry_.output_space(Shape(num_spatial, 0));
    for (int index = 0; index < num_spatial; ++index)
      sizes.push_back(named[index] > 0 ? std::to_string(named[index])
                                       : fmt::format("{}.size({})", args.inputs[0], 2 + index));
    return script_call(fmt::format("torch.adaptive_avg_pool{}d", num_spatial),
                       {args.inputs[0], script_list(sizes)});
  }
};

class AdaptiveMaxPool final : public AdaptivePool {
 public:
  using AdaptivePool::AdaptivePool;

  std::string kind() const override { return "adaptive_max_pool"; }

  ValueType infer_type(std::span<const ValueType> inputs) const override {
    const ValueType output = AdaptivePool::infer_type(inputs);
    const int64_t window = largest_window({{inputs[0]}, output});
    if (window > std::numeric_limits<int32_t>::max())
      throw_error<InvalidInput>("windows hold {} pixels, more than {}; pool in two steps", window,
                                std::numeric_limits<int32_t>::max());
    return output;
  }
  Saved saved(const Box& out, const NodeTypes& types) const override {
    return {largest_window(types) <= 256 ? at::kByte : at::kInt, out.volume()};
  }

  void forward(KernelArgs& args) const override {
    if (args.out_box.empty()) return;
    on_images(input(args), args.output.view(args.out_box), [&](const auto& x, const auto& y) {
      on_codes(args.saved, [&](auto* codes) { max_forward(piece(args), x, y, codes); });
    });
  }

  void input_gradient(KernelArgs& args) const override {
    if (!wants_gradient(args)) return;
    on_images(args.grad_output.tensor, args.grad_inputs[0].tensor,
              [&](const auto& dy, const auto& dx) {
                on_codes(args.saved,
                         [&](const auto* codes) { max_backward(piece(args), dy, codes, dx); });
              });
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    const at::Tensor& x = args.inputs[0];
    const Shape size = output_space(x);
    const auto pool = size.size() == 1   ? at::adaptive_max_pool1d
                      : size.size() == 2 ? at::adaptive_max_pool2d
                                         : at::adaptive_max_pool3d;
    return std::get<0>(pool(x, size));
  }

 private:
  /// Elements of the largest window.
  int64_t largest_window(const NodeTypes& types) const {
    int64_t volume = 1;
    for (const AdaptiveAxis& axis : geometry_.piece(Box::whole(types.output.shape()), types))
      volume *= axis.largest_window();
    return volume;
  }
};

}  // namespace

ValueId adaptive_average_pool(Graph& graph, ValueId x, const std::string& name,
                              const AdaptivePoolOptions& options) {
  const Shape one_per_axis(graph.type(x).num_spatial(), 1);
  if (options.size == Shape{1} || options.size == one_per_axis)
    return spatial_reduction(graph, x, name, {});
  return graph.add_node(name, std::make_shared<AdaptiveAveragePool>(options), {x});
}

ValueId adaptive_max_pool(Graph& graph, ValueId x, const std::string& name,
                          const AdaptivePoolOptions& options) {
  return graph.add_node(name, std::make_shared<AdaptiveMaxPool>(options), {x});
}

}  // namespace tessera
