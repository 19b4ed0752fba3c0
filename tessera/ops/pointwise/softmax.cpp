#include "tessera/ops/pointwise/softmax.h"

#include <ATen/Dispatch.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/kernels/cpu/pixel_tiles.h"

namespace tessera {
namespace {

using Form = SoftmaxOptions::Form;

/// Softmax is exp(x - max) / sum, its logarithm x - max - log(sum): no exponential overflows.
template <class T>
void softmax_tile(Form form, const PixelTile<const T>& x, int64_t channels, int64_t size,
                  const PixelTile<T>& y) {
  double max[TilePlace::kMaxSize], sum[TilePlace::kMaxSize] = {};
  for (int64_t p = 0; p < size; ++p) max[p] = x(0, p);
  for (int64_t c = 1; c < channels; ++c)
    for (int64_t p = 0; p < size; ++p) max[p] = std::max<double>(max[p], x(c, p));
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t p = 0; p < size; ++p) {
      const double distance = x(c, p) - max[p], exponential = std::exp(distance);
      sum[p] += exponential;
      y(c, p) = static_cast<T>(form == Form::kSoftmax ? exponential : distance);
    }
  if (form == Form::kLogSoftmax)
    for (int64_t p = 0; p < size; ++p) sum[p] = std::log(sum[p]);
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t p = 0; p < size; ++p)
      y(c, p) = static_cast<T>(form == Form::kSoftmax ? y(c, p) / sum[p] : y(c, p) - sum[p]);
}

/// dx = y (dy - sum(y dy)) for softmax, dx = dy - exp(y) sum(dy) for its logarithm.
template <class T>
void softmax_gradient_tile(Form form, const PixelTile<const T>& y, const PixelTile<const T>& dy,
                           int64_t channels, int64_t size, const PixelTile<T>& dx) {
  double sum[TilePlace::kMaxSize] = {};
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t p = 0; p < size; ++p)
      sum[p] += form == Form::kSoftmax ? static_cast<double>(y(c, p)) * dy(c, p) : dy(c, p);
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t p = 0; p < size; ++p)
      dx(c, p) = static_cast<T>(form == Form::kSoftmax
                                    ? y(c, p) * (dy(c, p) - sum[p])
                                    : dy(c, p) - std::exp(static_cast<double>(y(c, p))) * sum[p]);
}

class Softmax final : public Op {
 public:
  explicit Softmax(const SoftmaxOptions& options) : form_(options.form), groups_(options.groups) {}

  std::string settings() const override {
    return groups_ == 1 ? "" : fmt::format("{} groups", groups_);
  }
  std::string kind() const override { return form_ == Form::kSoftmax ? "softmax" : "log_softmax"; }

  ValueType infer_type(std::span<const ValueType> inputs) const override {
    const ValueType& input = inputs[0];
    if (input.element != Element::kReal || input.num_axes() < 2 ||
        input.axes[1].kind != AxisKind::kChannel || input.channels() < 1)
      throw_error<InvalidInput>("input {} must be real, with batch and at least one channel first",
                                to_string(input));
    if (groups_ < 1 || input.channels() % groups_ != 0)
      throw_error<InvalidInput>("{} of {}; give a divisor of the channels",
                                counted(groups_, "group"), counted(input.channels(), "channel"));
    return input;
  }
  /// All channels: they are never cut, so the output holds them too.
  Box needed(int, const Box& out, const NodeTypes&) const override { return out; }
  bool keeps_output() const override { return true; }
  double flops(const Box& out, const NodeTypes&) const override {
    return 12.0 * static_cast<double>(out.volume());
  }

  void forward(KernelArgs& args) const override {
    if (args.out_box.empty()) return;
    const at::Tensor input = args.inputs[0].view(args.out_box);
    AT_DISPATCH_FLOATING_TYPES(input.scalar_type(), "softmax", [&] {
      for (int64_t group = 0; group < groups_; ++group) {
        const at::Tensor in = channels_of(group, input);
        const PixelView<const scalar_t> x(in);
        const PixelView<scalar_t> y(channels_of(group, args.output.view(args.out_box)));
        in_pixel_tiles(in, [&](const TilePlace& place) {
          softmax_tile<scalar_t>(form_, x.tile(place), in.size(1), place.size, y.tile(place));
        });
      }
    });
  }

  void input_gradient(KernelArgs& args) const override {
    if (args.out_box.empty() || !args.grad_inputs[0].tensor.defined()) return;
    const at::Tensor output = args.output.view(args.out_box);
    AT_DISPATCH_FLOATING_TYPES(output.scalar_type(), "softmax", [&] {
      for (int64_t group = 0; group < groups_; ++group) {
        const at::Tensor out = channels_of(group, output);
        const PixelView<const scalar_t> y(out);
        const PixelView<const scalar_t> dy(channels_of(group, args.grad_output.view(args.out_box)));
        const PixelView<scalar_t> dx(channels_of(group, args.grad_inputs[0].view(args.out_box)));
        in_pixel_tiles(out, [&](const TilePlace& place) {
          softmax_gradient_tile<scalar_t>(form_, y.tile(place), dy.tile(place), out.size(1),
                                          place.size, dx.tile(place));
        });
      }
    });
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    const at::Tensor& x = args.inputs[0];
    const at::Tensor grouped = x.reshape({x.size(0), groups_, x.size(1) / groups_, -1});
    const at::Tensor y =
        form_ == Form::kSoftmax ? at::softmax(grouped, 2) : at::log_softmax(grouped, 2);
    return y.reshape(x.sizes());
  }

 private:
  at::Tensor channels_of(int64_t group, const at::Tensor& tensor) const {
    const int64_t count = tensor.size(1) / groups_;
    return tensor.narrow(1, group * count, count);
  }

  Form form_;
  int64_t groups_;
};

}  // namespace

ValueId softmax(Graph& graph, ValueId x, const std::string& name, const SoftmaxOptions& options) {
  return graph.add_node(name, std::make_shared<Softmax>(options), {x});
}

}  // namespace tessera
