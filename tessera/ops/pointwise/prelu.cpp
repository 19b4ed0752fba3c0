#include "tessera/ops/pointwise/prelu.h"

#include <ATen/Dispatch.h>

#include <cmath>
#include <memory>

#include "tessera/base/error.h"
#include "tessera/kernels/cpu/image_view.h"
#include "tessera/kernels/cpu/plane_blocks.h"

namespace tessera {
namespace {

/// out = x > 0 ? value : slope * value. With x as value it is forward, with the gradient of the
/// output it is that of the input.
template <class T>
void apply_slopes(const at::Tensor& x_image, const at::Tensor& value_image,
                  const at::Tensor& slopes, const at::Tensor& out_image) {
  const std::vector<at::Tensor> images = join_rows({x_image, value_image, out_image});
  const ImageView<const T> x(images[0]), value(images[1]);
  const ImageView<T> out(images[2]);
  const T* slope = slopes.data_ptr<T>();
  const PlaneBlocks blocks(images[0]);
  blocks.in_parallel([&](int64_t block) {
    const int64_t n = blocks.batch(block), c = blocks.channel(block);
    const T s = slope[c];
    blocks.for_rows(block, [&](int64_t d, int64_t h, int64_t column, int64_t columns) {
      const T* in = x.row(n, c, d, h) + column;
      const T* from = value.row(n, c, d, h) + column;
      T* to = out.row(n, c, d, h) + column;
#pragma GCC ivdep
      for (int64_t i = 0; i < columns; ++i) to[i] = in[i] > 0 ? from[i] : s * from[i];
    });
  });
}

/// The sum of x * dy over the elements that are multiplied by the slope, in each block.
template <class T>
std::vector<double> block_sums(const PlaneBlocks& blocks, const ImageView<const T>& x,
                               const ImageView<const T>& dy) {
  std::vector<double> sums(blocks.total());
  blocks.in_parallel([&](int64_t block) {
    const int64_t n = blocks.batch(block), c = blocks.channel(block);
    double sum = 0;
    blocks.for_rows(block, [&](int64_t d, int64_t h, int64_t column, int64_t columns) {
      const T* in = x.row(n, c, d, h) + column;
      const T* grad = dy.row(n, c, d, h) + column;
      for (int64_t i = 0; i < columns; ++i)
        sum += in[i] > 0 ? 0.0 : static_cast<double>(in[i]) * grad[i];
    });
    sums[block] = sum;
  });
  return sums;
}

class Prelu final : public Op {
 public:
  explicit Prelu(const PreluOptions& options) : options_(options) {}

  std::string kind() const override { return "prelu"; }
  std::string settings() const override {
    return options_.num_parameters == 1 ? "one slope" : "a slope per channel";
  }

  ValueType infer_type(std::span<const ValueType> inputs) const override {
    const ValueType& input = inputs[0];
    if (input.element != Element::kReal || input.num_axes() < 2 || input.num_axes() > 5 ||
        input.axes[1].kind != AxisKind::kChannel)
      throw_error<InvalidInput>("input {} must be real, with batch, channels and up to 3 more axes",
                                to_string(input));
    if (options_.num_parameters != 1 && options_.num_parameters != input.channels())
      throw_error<InvalidInput>("num_parameters {} must be 1 or the number of channels, {}",
                                options_.num_parameters, input.channels());
    if (!std::isfinite(options_.initial))
      throw_error<InvalidInput>("initial {} must be finite", options_.initial);
    return input;
  }
  Box needed(int, const Box& out, const NodeTypes&) const override { return out; }
  bool keeps_input(int) const override { return true; }
  bool cheap_to_recompute() const override { return true; }

  void forward(KernelArgs& args) const override {
    if (args.out_box.empty()) return;
    const at::Tensor x = read_rows(args.inputs[0].view(args.out_box));
    write_rows(args.output.view(args.out_box), [&](const at::Tensor& y) {
      AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "prelu",
                                 [&] { apply_slopes<scalar_t>(x, x, slopes(args), y); });
    });
  }

  void input_gradient(KernelArgs& args) const override {
    if (args.out_box.empty() || !args.grad_inputs[0].tensor.defined()) return;
    const at::Tensor x = read_rows(args.inputs[0].view(args.out_box));
    const at::Tensor dy = read_rows(args.grad_output.view(args.out_box));
    write_rows(args.grad_inputs[0].view(args.out_box), [&](const at::Tensor& dx) {
      AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "prelu",
                                 [&] { apply_slopes<scalar_t>(x, dy, slopes(args), dx); });
    });
  }

  void weight_gradient(KernelArgs& args) const override {
    if (args.out_box.empty()) return;
    const std::vector<at::Tensor> images =
        join_rows({read_rows(args.inputs[0].view(args.out_box)),
                   read_rows(args.grad_output.view(args.out_box))});
    const PlaneBlocks blocks(images[0]);
    const at::Tensor sums = at::zeros({options_.num_parameters}, at::kDouble);
    AT_DISPATCH_FLOATING_TYPES(images[0].scalar_type(), "prelu", [&] {
      const std::vector<double> parts = block_sums<scalar_t>(
          blocks, ImageView<const scalar_t>(images[0]), ImageView<const scalar_t>(images[1]));
      for (int64_t block = 0; block < blocks.total(); ++block) {
        const int64_t channel = args.out_box[1].begin + blocks.channel(block);
        sums.data_ptr<double>()[options_.num_parameters == 1 ? 0 : channel] += parts[block];
      }
    });
    args.grad_parameters[0].add_(sums.to(args.grad_parameters[0].scalar_type()));
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    return at::prelu(args.inputs[0], args.parameters[0]);
  }

 private:
  /// One for each channel of the piece.
  at::Tensor slopes(const KernelArgs& args) const {
    const Range& channels = args.out_box[1];
    const at::Tensor& weight = args.parameters[0];
    return (options_.num_parameters == 1 ? weight.expand({channels.size()})
                                         : weight.narrow(0, channels.begin, channels.size()))
        .contiguous();
  }

  PreluOptions options_;
};

}  // namespace

ValueId prelu(Graph& graph, ValueId x, const std::string& name, const PreluOptions& options) {
  const ParameterId weight = graph.add_parameter({name + ".weight",
                                                  {options.num_parameters},
                                                  ParameterRole::kTrainable,
                                                  {Initial::Kind::kConstant, options.initial}});
  return graph.add_node(name, std::make_shared<Prelu>(options), {x}, {weight});
}

}  // namespace tessera
