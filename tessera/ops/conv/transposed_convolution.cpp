#include "tessera/ops/conv/transposed_convolution.h"

#include "tessera/base/error.h"
#include "tessera/graph/script.h"
#include "tessera/ops/conv/convolution_op.h"
#include "tessera/ops/conv/linear.h"

namespace tessera {
namespace {

class TransposedConvolution final : public ConvolutionOp {
 public:
  using ConvolutionOp::ConvolutionOp;

  std::shared_ptr<const Op> direct() const override { return made_direct(*this); }
  std::string kind() const override { return "transposed_convolution"; }
  double flops(const Box& out, const NodeTypes& types) const override {
    const int64_t terms = geometry_.out_channels / geometry_.groups * geometry_.kernel_volume();
    return 2.0 * static_cast<double>(needed(0, out, types).volume()) * static_cast<double>(terms);
  }

  ScratchBytes scratch_bytes(Phase phase, const Box& out, const NodeTypes& types,
                             const Numbers& numbers) const override {
    return kernel_scratch_bytes(phase,
                                weight_shape(types.inputs[0].channels(), geometry_.out_channels),
                                needed(0, out, types), numbers);
  }

  void forward(KernelArgs& args) const override;
  void input_gradient(KernelArgs& args) const override;
  void weight_gradient(KernelArgs& args) const override;

  at::Tensor reference(const ReferenceArgs& args) const override {
    return at::convolution(args.inputs[0], args.parameters[0],
                           bias_ ? args.parameters[1] : at::Tensor(), stride_,
                           entries(&Window::pad_low), dilation_,
                           /*transposed=*/true, entries(&Window::output_padding), geometry_.groups);
  }

  std::optional<std::string> script(const ScriptArgs& args) const override {
    return script_call(fmt::format("torch.conv_transpose{}d", geometry_.windows.size()),
                       {args.inputs[0], args.parameters[0], script_or_none(args.parameters, 1),
                        script_list(stride_), script_list(entries(&Window::pad_low)),
                        script_list(entries(&Window::output_padding)),
                        std::to_string(geometry_.groups), script_list(dilation_)});
  }

 private:
  std::vector<int64_t> entries(int64_t Window::*of) const {
    std::vector<int64_t> values;
    for (const Window& window : geometry_.windows) values.push_back(window.*of);
    return values;
  }

  /// The outputs, in global coordinates, that the product of the inputs `in` covers.
  Box reached(const Box& in) const {
    Box box{in[0], {0, geometry_.out_channels}};
    for (size_t i = 0; i < geometry_.windows.size(); ++i)
      box.push_back(geometry_.windows[i].reached(in[2 + i]));
    return box;
  }

  /// For a piece's input: where the output lies beside the product.
  ConvolutionShape shape_of(const KernelArgs& args) const {
    ConvolutionShape shape = shape_;
    const Box product = reached(args.inputs[0].box);
    for (int axis = 2; axis < product.num_axes(); ++axis)
      shape.fine_begin.push_back(args.out_box[axis].begin - product[axis].begin);
    return shape;
  }

  /// The piece without any product: its bias.
  void write_bias_alone(const KernelArgs& args) const {
    if (!bias_) {
      args.output.tensor.zero_();
      return;
    }
    std::vector<int64_t> per_channel(args.out_box.num_axes(), 1);
    per_channel[1] = geometry_.out_channels;
    args.output.tensor.copy_(args.parameters[1].view(per_channel));
  }
};

void TransposedConvolution::forward(KernelArgs& args) const {
  const Operand& x = args.inputs[0];
  if (x.box.empty()) return write_bias_alone(args);
  convolve_transposed(shape_of(args), x.tensor, args.parameters[0],
                      bias_ ? args.parameters[1] : at::Tensor(), args.output.tensor, args.scratch);
}

void TransposedConvolution::input_gradient(KernelArgs& args) const {
  const Operand& grad = args.grad_inputs[0];
  if (grad.box.empty()) return;
  convolve(shape_of(args), args.grad_output.tensor, args.parameters[0], {}, grad.tensor,
           args.scratch);
}

void TransposedConvolution::weight_gradient(KernelArgs& args) const {
  const Operand& x = args.inputs[0];
  // Outputs that no input reaches have their bias.
  if (!x.box.empty())
    add_convolution_weight_gradient(shape_of(args), args.grad_output.tensor, x.tensor,
                                    args.grad_parameters[0], args.scratch);
  if (bias_) add_bias_gradient(args);
}

void check_output_padding(const std::vector<Window>& windows, const std::string& place) {
  for (const Window& window : windows)
    if (window.output_padding >= std::max(window.stride, window.dilation))
      throw_error<InvalidInput>(
          "{} output_padding {} must be less than the stride {} or the dilation {}", place,
          window.output_padding, window.stride, window.dilation);
}

}  // namespace

ValueId transposed_convolution(Graph& graph, ValueId x, const std::string& name,
                               const TransposedConvolutionOptions& options) {
  const ValueType type = graph.type(x);
  const ConvolutionEntries entries(options, type, "[transposed_convolution " + name + "]");
  const auto padding = entries.read(options.padding, 0, "padding");
  const auto output_padding = entries.read(options.output_padding, 0, "output_padding");

  ConvolutionGeometry geometry{{}, options.out_channels, options.groups};
  Shape weight_shape{type.channels(), options.out_channels / options.groups};
  for (size_t i = 0; i < entries.kernel.size(); ++i) {
    geometry.windows.push_back({.kernel = entries.kernel[i],
                                .stride = entries.stride[i],
                                .dilation = entries.dilation[i],
                                .pad_low = padding[i],
                                .pad_high = padding[i],
                                .output_padding = output_padding[i],
                                .transposed = true});
    weight_shape.push_back(entries.kernel[i]);
  }
  check_output_padding(geometry.windows, entries.place);
  const auto parameters =
      add_weight_and_bias(graph, name, weight_shape, options.bias ? options.out_channels : 0);
  return graph.add_node(name,
                        std::make_shared<TransposedConvolution>(std::move(geometry), options.bias),
                        {x}, parameters);
}

}  // namespace tessera
