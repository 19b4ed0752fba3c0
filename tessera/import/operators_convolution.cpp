#include <fmt/format.h>

#include "tessera/base/text.h"
#include "tessera/import/arrange.h"
#include "tessera/import/operators.h"
#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/conv/linear.h"
#include "tessera/ops/conv/transposed_convolution.h"

namespace tessera {
namespace {

/// A weight [a, b, kernel...] for an image with as many spatial axes. Checked here, since the
/// builders take kernel and channels from it.
WeightSymbol kernel_weight(Call& call, const ValueType& input) {
  const auto weight = call.weight("weight");
  const size_t axes = static_cast<size_t>(input.num_axes());
  if (!weight || weight->view.size() != axes)
    call.refuse(
        fmt::format("the input {} has {} axes, the weight {}; they must agree (batch, "
                    "channels and space: is the batch axis missing?)",
                    to_string(input), axes, weight ? weight->view.size() : 0));
  for (int64_t size : weight->view)
    if (size < 1) call.refuse(fmt::format("the weight {} is empty", weight->name));
  return *weight;
}

std::vector<int64_t> kernel_of(const WeightSymbol& weight) {
  return {weight.view.begin() + 2, weight.view.end()};
}

Symbols import_convolution_with(Call& call, ConvolutionOptions options,
                                const WeightSymbol& weight) {
  const ValueId x = call.image("input");
  options.out_channels = weight.view[0];
  options.kernel = kernel_of(weight);
  options.groups = call.integer("groups");
  options.bias = call.has("bias");
  const int64_t channels = call.type(x).channels();
  if (options.groups < 1 || weight.view[1] * options.groups != channels)
    call.refuse(fmt::format("the weight {} takes {}, the input has {}", weight.name,
                            counted(weight.view[1] * options.groups, "channel"), channels));
  const std::string name =
      call.bind_weights("conv", {{"weight", weight}, {"bias", call.weight("bias")}});
  return call.result(convolution(call.graph(), x, name, options));
}

Symbols import_convolution(Call& call) {
  const ValueType& input = call.type(call.image("input"));
  const WeightSymbol weight = kernel_weight(call, input);
  ConvolutionOptions options;
  options.stride = call.window_numbers("stride");
  options.dilation = call.window_numbers("dilation");
  const auto* words = std::get_if<c10::IValue>(&call["padding"]);
  if (!words || !words->isString()) {
    options.padding = call.window_numbers("padding");
  } else if (words->toStringRef() == "same") {
    const std::vector<int64_t> kernel = kernel_of(weight);
    options.padding.clear();
    for (size_t i = 0; i < kernel.size(); ++i) {
      const int64_t dilation = options.dilation[options.dilation.size() == 1 ? 0 : i];
      const int64_t total = dilation * (kernel[i] - 1);
      options.padding.push_back(total / 2);
      options.padding_high.push_back(total - total / 2);
    }
  } else if (words->toStringRef() != "valid") {
    call.refuse("padding is neither numbers nor 'same' nor 'valid'");
  }
  return import_convolution_with(call, options, weight);
}

Symbols import_transposed(Call& call) {
  const ValueId x = call.image("input");
  const WeightSymbol weight = kernel_weight(call, call.type(x));
  TransposedConvolutionOptions options;
  options.stride = call.window_numbers("stride");
  options.padding = call.window_numbers("padding");
  options.output_padding = call.window_numbers("output_padding");
  options.dilation = call.window_numbers("dilation");
  options.groups = call.integer("groups");
  options.out_channels = weight.view[1] * options.groups;
  options.kernel = kernel_of(weight);
  options.bias = call.has("bias");
  if (weight.view[0] != call.type(x).channels())
    call.refuse(fmt::format("the weight {} takes {}, the input has {}", weight.name,
                            counted(weight.view[0], "channel"), call.type(x).channels()));
  const std::string name =
      call.bind_weights("conv_transpose", {{"weight", weight}, {"bias", call.weight("bias")}});
  return call.result(transposed_convolution(call.graph(), x, name, options));
}

/// The traced form, which serves both.
Symbols import_either(Call& call) {
  if (call.flag("transposed")) return import_transposed(call);
  return import_convolution(call);
}

/// Over the last axis of the code: features, the channels of tokens or of a channels-last image.
Symbols import_linear(Call& call) {
  const TensorPointer x = call.tensor("input");
  const auto weight = call.weight("weight");
  if (!weight || weight->view.size() != 2) call.refuse("the weight is not a matrix");
  const int last = x->view.num_axes() - 1;
  bring_alone_to_channels(call.graph(), *x, last, call.name("rearrange"));
  const int64_t channels = call.type(x->value).channels();
  if (weight->view[1] != channels)
    call.refuse(fmt::format("the weight {} takes {} features, the input has {}", weight->name,
                            weight->view[1], channels));
  const LinearOptions options{weight->view[0], call.has("bias")};
  const std::string name =
      call.bind_weights("linear", {{"weight", weight}, {"bias", call.weight("bias")}});
  return call.result(linear(call.graph(), x->value, name, options),
                     x->view.with_axis(last, {{1, 1, options.out_features}}));
}

}  // namespace

std::vector<Operator> convolution_operators() {
  return {{{"aten::conv1d", "aten::conv2d", "aten::conv3d", "aten::_convolution_mode"},
           "convolution: any kernel, stride, dilation, groups; padding by numbers, 'same' or "
           "'valid'; other padding modes arrive as a pad before it",
           import_convolution},
          {{"aten::_convolution", "aten::convolution"},
           "convolution or transposed convolution (the form of traced models)",
           import_either},
          {{"aten::conv_transpose1d", "aten::conv_transpose2d", "aten::conv_transpose3d"},
           "transposed convolution with output padding, dilation and groups",
           import_transposed},
          {{"aten::linear"},
           "linear layer over the last axis: features, channels last, tokens, or anything else",
           import_linear}};
}

}  // namespace tessera
