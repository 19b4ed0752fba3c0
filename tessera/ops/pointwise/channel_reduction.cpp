#include "tessera/ops/pointwise/channel_reduction.h"

#include <ATen/Dispatch.h>

#include <memory>
#include <type_traits>

#include "tessera/base/error.h"
#include "tessera/kernels/cpu/pixel_tiles.h"

namespace tessera {
namespace {

using How = ChannelReductionOptions::How;

/// Sums in float64 and in the order of the channels, whatever the layout.
template <class T>
void sum_tile(const PixelTile<const T>& x, int64_t channels, int64_t size, double divisor,
              const PixelTile<T>& y) {
  double sum[TilePlace::kMaxSize] = {};
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t p = 0; p < size; ++p) sum[p] += x(c, p);
  for (int64_t p = 0; p < size; ++p) y(0, p) = static_cast<T>(sum[p] / divisor);
}

/// The first of equal values wins, and the first NaN over all: PyTorch's rules.
template <class T, class Code>
void max_tile(const PixelTile<const T>& x, int64_t channels, int64_t size, const PixelTile<T>& y,
              Code* codes) {
  // As wide as the values, so that both are blended in the same vector lanes.
  using Choice = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
  T best[TilePlace::kMaxSize];
  Choice choice[TilePlace::kMaxSize] = {};
  for (int64_t p = 0; p < size; ++p) best[p] = x(0, p);
  for (int64_t c = 1; c < channels; ++c)
    for (int64_t p = 0; p < size; ++p) {
      const T value = x(c, p);
      const bool take = (value > best[p]) | ((value != value) & (best[p] == best[p]));
      best[p] = take ? value : best[p];
      choice[p] = take ? static_cast<Choice>(c) : choice[p];
    }
  for (int64_t p = 0; p < size; ++p) y(0, p) = best[p];
  for (int64_t p = 0; p < size; ++p) codes[p] = static_cast<Code>(choice[p]);
}

template <class T, class Code>
void max_gradient_tile(const PixelTile<const T>& dy, const Code* codes, int64_t channels,
                       int64_t size, const PixelTile<T>& dx) {
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t p = 0; p < size; ++p)
      dx(c, p) = codes[p] == static_cast<Code>(c) ? dy(0, p) : T(0);
}

/// Calls run.template operator()<scalar type>(codes).
template <class Run>
void dispatch(const at::Tensor& x, const at::Tensor& saved, Run&& run) {
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "channel_max", [&] {
    if (saved.scalar_type() == at::kByte)
      run.template operator()<scalar_t>(saved.data_ptr<uint8_t>());
    else
      run.template operator()<scalar_t>(saved.data_ptr<int32_t>());
  });
}

class ChannelReduction final : public Op {
 public:
  explicit ChannelReduction(const ChannelReductionOptions& options) : how_(options.how) {}

  std::string kind() const override {
    return how_ == How::kSum ? "channel_sum" : how_ == How::kMean ? "channel_mean" : "channel_max";
  }

  ValueType infer_type(std::span<const ValueType> inputs) const override {
    ValueType type = inputs[0];
    if (type.element != Element::kReal || type.num_axes() < 2 ||
        type.axes[1].kind != AxisKind::kChannel || type.channels() < 1)
      throw_error<InvalidInput>("input {} must be real, with batch and at least one channel first",
                                to_string(type));
    type.axes[1].size = 1;
    return type;
  }
  Box needed(int, const Box& out, const NodeTypes& types) const override {
    Box box = out;
    if (!out[1].empty()) box[1] = {0, types.inputs[0].channels()};
    return box;
  }
  /// For each output, the channel of the maximum.
  Saved saved(const Box& out, const NodeTypes& types) const override {
    if (how_ != How::kMax) return {};
    return {types.inputs[0].channels() <= 256 ? at::kByte : at::kInt, out.volume()};
  }
  bool cheap_to_recompute() const override { return how_ != How::kMax; }
  double flops(const Box& out, const NodeTypes& types) const override {
    return static_cast<double>(needed(0, out, types).volume());
  }

  void forward(KernelArgs& args) const override {
    if (args.out_box.empty()) return;
    const at::Tensor input = args.inputs[0].view(needed(0, args.out_box, *args.types));
    const at::Tensor output = args.output.view(args.out_box);
    how_ == How::kMax ? choose_max(input, output, args.saved) : sum(input, output);
  }

  void input_gradient(KernelArgs& args) const override {
    if (args.out_box.empty() || !args.grad_inputs[0].tensor.defined()) return;
    at::Tensor gradient = args.grad_inputs[0].view(needed(0, args.out_box, *args.types));
    const at::Tensor dy = args.grad_output.view(args.out_box);
    if (how_ == How::kMax)
      give_to_chosen(dy, args.saved, gradient);
    else
      at::div_out(gradient, dy.expand_as(gradient),
                  at::scalar_tensor(divisor(gradient), gradient.options()));
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    const at::Tensor& x = args.inputs[0];
    if (how_ == How::kMax) return std::get<0>(at::max(x, 1, /*keepdim=*/true));
    return how_ == How::kSum ? at::sum(x, 1, /*keepdim=*/true) : at::mean(x, 1, /*keepdim=*/true);
  }

 private:
  double divisor(const at::Tensor& x) const {
    return how_ == How::kMean ? static_cast<double>(x.size(1)) : 1.0;
  }

  void sum(const at::Tensor& input, const at::Tensor& output) const {
    AT_DISPATCH_FLOATING_TYPES(input.scalar_type(), "channel_sum", [&] {
      const PixelView<const scalar_t> x(input);
      const PixelView<scalar_t> y(output);
      in_pixel_tiles(input, [&](const TilePlace& place) {
        sum_tile<scalar_t>(x.tile(place), input.size(1), place.size, divisor(input), y.tile(place));
      });
    });
  }

  static void choose_max(const at::Tensor& input, const at::Tensor& output,
                         const at::Tensor& saved) {
    dispatch(input, saved, [&]<class T>(auto* codes) {
      const PixelView<const T> x(input);
      const PixelView<T> y(output);
      in_pixel_tiles(input, [&](const TilePlace& place) {
        max_tile<T>(x.tile(place), input.size(1), place.size, y.tile(place),
                    codes + place.first_pixel);
      });
    });
  }

  static void give_to_chosen(const at::Tensor& grad_output, const at::Tensor& saved,
                             const at::Tensor& gradient) {
    dispatch(gradient, saved, [&]<class T>(const auto* codes) {
      const PixelView<const T> dy(grad_output);
      const PixelView<T> dx(gradient);
      in_pixel_tiles(gradient, [&](const TilePlace& place) {
        max_gradient_tile<T>(dy.tile(place), codes + place.first_pixel, gradient.size(1),
                             place.size, dx.tile(place));
      });
    });
  }

  How how_;
};

}  // namespace

ValueId channel_reduction(Graph& graph, ValueId x, const std::string& name,
                          const ChannelReductionOptions& options) {
  return graph.add_node(name, std::make_shared<ChannelReduction>(options), {x});
}

}  // namespace tessera
