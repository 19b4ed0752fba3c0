#include "tessera/ops/conv/convolution.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/graph/script.h"
#include "tessera/ops/conv/convolution_op.h"
#include "tessera/ops/conv/linear.h"

namespace tessera {
namespace {

class Convolution final : public ConvolutionOp {
 public:
  using ConvolutionOp::ConvolutionOp;

  std::shared_ptr<const Op> direct() const override { return made_direct(*this); }
  std::string kind() const override { return "convolution"; }
  double flops(const Box& out, const NodeTypes& types) const override {
    const int64_t terms = types.inputs[0].channels() / geometry_.groups * geometry_.kernel_volume();
    return 2.0 * static_cast<double>(out.volume()) * static_cast<double>(terms);
  }

  ScratchBytes scratch_bytes(Phase phase, const Box& out, const NodeTypes& types,
                             const Numbers& numbers) const override {
    return kernel_scratch_bytes(
        phase, weight_shape(geometry_.out_channels, types.inputs[0].channels()), out, numbers);
  }

  /// Windows of a longer stride share few pixels.
  std::optional<Box> reached(int, const Box& in, const NodeTypes& types) const override {
    Box box{in[0], {0, geometry_.out_channels}};
    for (size_t i = 0; i < geometry_.windows.size(); ++i) {
      Window back = geometry_.windows[i];
      if (back.stride != 1) return std::nullopt;
      back.transposed = true;
      box.push_back(back.needed(in[2 + i], types.output.axes[2 + i].size));
    }
    return box;
  }

  void forward(KernelArgs& args) const override {
    convolve(shape_, args.inputs[0].tensor, args.parameters[0],
             bias_ ? args.parameters[1] : at::Tensor(), args.output.tensor, args.scratch);
  }

  /// Of the image alone: nobody reads the gradient of the zeros around it.
  void input_gradient(KernelArgs& args) const override {
    at::Tensor grad_input = args.grad_inputs[0].tensor;
    convolve_transposed(inside_image(args, grad_input), args.grad_output.tensor, args.parameters[0],
                        {}, grad_input, args.scratch);
  }

  void weight_gradient(KernelArgs& args) const override {
    add_convolution_weight_gradient(shape_, args.inputs[0].tensor, args.grad_output.tensor,
                                    args.grad_parameters[0], args.scratch);
    if (bias_) add_bias_gradient(args);
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    return at::convolution(at::constant_pad_nd(args.inputs[0], padding_last_axis_first()),
                           args.parameters[0], bias_ ? args.parameters[1] : at::Tensor(), stride_,
                           no_padding_, dilation_, /*transposed=*/false, no_padding_,
                           geometry_.groups);
  }

  /// PyTorch pads both ends alike; other padding comes first.
  std::optional<std::string> script(const ScriptArgs& args) const override {
    std::string x = args.inputs[0];
    std::vector<int64_t> padding;
    for (const Window& window : geometry_.windows)
      if (window.pad_low == window.pad_high) padding.push_back(window.pad_low);
    if (padding.size() < geometry_.windows.size()) {
      x = script_call("torch.constant_pad_nd",
                      {x, script_list(padding_last_axis_first()), script_real(0)});
      padding = no_padding_;
    }
    return script_call(
        fmt::format("torch.conv{}d", geometry_.windows.size()),
        {x, args.parameters[0], script_or_none(args.parameters, 1), script_list(stride_),
         script_list(padding), script_list(dilation_), std::to_string(geometry_.groups)});
  }

 private:
  /// Narrows the gradient of the input to the image, and says where it begins then.
  ConvolutionShape inside_image(const KernelArgs& args, at::Tensor& grad_input) const {
    ConvolutionShape shape = shape_;
    shape.fine_begin.assign(geometry_.windows.size(), 0);
    for (size_t i = 0; i < geometry_.windows.size(); ++i) {
      const Window& window = geometry_.windows[i];
      const Range needed = args.grad_inputs[0].box[2 + i];
      const int64_t size = args.types->inputs[0].axes[2 + i].size;
      const int64_t begin = std::clamp<int64_t>(0, needed.begin, needed.end);
      const int64_t end = std::clamp(size, begin, needed.end);
      grad_input =
          grad_input.narrow(2 + static_cast<int64_t>(i), begin - needed.begin, end - begin);
      shape.fine_begin[i] =
          begin + window.pad_low - args.grad_output.box[2 + i].begin * window.stride;
    }
    return shape;
  }

  /// (low, high) of the last axis first, as PyTorch's padding takes them.
  std::vector<int64_t> padding_last_axis_first() const {
    std::vector<int64_t> padding;
    for (auto window = geometry_.windows.rbegin(); window != geometry_.windows.rend(); ++window) {
      padding.push_back(window->pad_low);
      padding.push_back(window->pad_high);
    }
    return padding;
  }
};

}  // namespace

std::vector<int64_t> ConvolutionGeometry::stride() const {
  std::vector<int64_t> strides;
  for (const Window& window : windows) strides.push_back(window.stride);
  return strides;
}

std::vector<int64_t> ConvolutionGeometry::dilation() const {
  std::vector<int64_t> dilations;
  for (const Window& window : windows) dilations.push_back(window.dilation);
  return dilations;
}

int64_t ConvolutionGeometry::kernel_volume() const {
  int64_t volume = 1;
  for (const Window& window : windows) volume *= window.kernel;
  return volume;
}

std::string ConvolutionGeometry::settings() const {
  std::vector<int64_t> kernel, low, high;
  for (const Window& window : windows) {
    kernel.push_back(window.kernel);
    low.push_back(window.pad_low);
    high.push_back(window.pad_high);
  }
  std::string text = sizes_text(kernel);
  const auto add = [&](const char* what, const std::vector<int64_t>& values, int64_t usual) {
    if (values != std::vector<int64_t>(values.size(), usual))
      text += fmt::format(", {} {}", what, sizes_text(values));
  };
  add("stride", stride(), 1);
  add("dilation", dilation(), 1);
  add("padding", low, 0);
  if (high != low) text += fmt::format(" / {}", sizes_text(high));
  if (groups != 1) text += fmt::format(", groups {}", groups);
  return text;
}

ValueType ConvolutionGeometry::infer_type(const ValueType& input) const {
  if (input.channels() % groups != 0 || out_channels % groups != 0)
    throw_error<InvalidInput>("{} input and {} output channels must be multiples of groups = {}",
                              input.channels(), out_channels, groups);
  ValueType output = input;
  output.axes[1].size = out_channels;
  for (size_t i = 0; i < windows.size(); ++i) {
    const Window& window = windows[i];
    Axis& axis = output.axes[2 + i];
    const int64_t size = window.output_size(axis.size);
    if (size < 1)
      throw_error<InvalidInput>(
          "spatial axis {} of input {} is too small: kernel {} with dilation {} and padding {} + "
          "{} "
          "gives {} outputs; enlarge the image or the padding",
          i, to_string(input), window.kernel, window.dilation, window.pad_low, window.pad_high,
          size);
    const Ratio step{window.stride, 1};
    axis.stride = window.transposed ? axis.stride / step : axis.stride * step;
    axis.size = size;
  }
  return output;
}

Box ConvolutionGeometry::needed(const Box& out, const ValueType& input) const {
  Box box{out[0], {0, input.channels()}};
  for (size_t i = 0; i < windows.size(); ++i)
    box.push_back(windows[i].needed(out[2 + i], input.axes[2 + i].size));
  return box;
}

void check_is_image(const ValueType& input, const std::string& place) {
  const bool is_image =
      input.num_axes() >= 3 && input.first_spatial() == 2 && input.element == Element::kReal;
  if (!is_image)
    throw_error<InvalidInput>(
        "{} input {} must be real, with batch, channels and 1 to 3 spatial axes", place,
        to_string(input));
}

std::string sizes_text(const std::vector<int64_t>& sizes) {
  std::string text;
  for (int64_t size : sizes) text += fmt::format("{}{}", text.empty() ? "" : "x", size);
  return text;
}

std::vector<int64_t> entry_per_axis(const std::vector<int64_t>& values, int num_spatial,
                                    int64_t least, const std::string& what) {
  const auto count = static_cast<size_t>(num_spatial);
  if (values.size() != 1 && values.size() != count)
    throw_error<InvalidInput>("{} has {} entries; give 1, or {} for {} spatial axes", what,
                              values.size(), count, count);
  for (int64_t value : values)
    if (value < least)
      throw_error<InvalidInput>("{} must be at least {}, got {}", what, least, value);
  return values.size() == count ? values : std::vector<int64_t>(count, values[0]);
}

ValueId convolution(Graph& graph, ValueId x, const std::string& name,
                    const ConvolutionOptions& options) {
  const ValueType type = graph.type(x);
  const ConvolutionEntries entries(options, type, "[convolution " + name + "]");
  const auto low = entries.read(options.padding, 0, "padding");
  const auto high =
      options.padding_high.empty() ? low : entries.read(options.padding_high, 0, "padding_high");

  ConvolutionGeometry geometry{{}, options.out_channels, options.groups};
  Shape weight_shape{options.out_channels, type.channels() / options.groups};
  for (size_t i = 0; i < entries.kernel.size(); ++i) {
    geometry.windows.push_back({.kernel = entries.kernel[i],
                                .stride = entries.stride[i],
                                .dilation = entries.dilation[i],
                                .pad_low = low[i],
                                .pad_high = high[i]});
    weight_shape.push_back(entries.kernel[i]);
  }
  const auto parameters =
      add_weight_and_bias(graph, name, weight_shape, options.bias ? options.out_channels : 0);
  return graph.add_node(name, std::make_shared<Convolution>(std::move(geometry), options.bias), {x},
                        parameters);
}

}  // namespace tessera
