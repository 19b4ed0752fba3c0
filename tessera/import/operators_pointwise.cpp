#include <limits>

#include "tessera/import/arrange.h"
#include "tessera/import/operators.h"
#include "tessera/ops/pointwise/pointwise.h"
#include "tessera/ops/pointwise/prelu.h"
#include "tessera/ops/pointwise/relu.h"
#include "tessera/ops/pointwise/softmax.h"

namespace tessera {
namespace {

using Function = PointwiseFunction;

Symbols apply(Call& call, const std::string& kind, const PointwiseOptions& options) {
  const TensorPointer x = call.tensor("self");
  return call.result(pointwise(call.graph(), x->value, call.name(kind), options), x->view);
}

/// An operator without numbers of its own.
Operator plain(const std::string& name, Function function) {
  return {{"aten::" + name}, name, [name, function](Call& call) {
            return apply(call, name, {function, 0, 0});
          }};
}

/// An operator whose numbers are the arguments `a` and `b` ("" where it has none).
Operator with(const std::string& name, Function function, const std::string& a,
              const std::string& b = "") {
  return {{"aten::" + name}, name, [=](Call& call) {
            return apply(call, name, {function, call.real(a), b.empty() ? 0 : call.real(b)});
          }};
}

Symbols import_relu(Call& call) {
  const TensorPointer x = call.tensor("self");
  return call.result(relu(call.graph(), x->value, call.name("relu")), x->view);
}

Symbols import_elu(Call& call) {
  const bool as_selu = call.real("scale") != 1 || call.real("input_scale") != 1;
  if (as_selu) call.refuse("has a scale of its own; use nn.ELU or nn.SELU");
  return apply(call, "elu", {Function::kElu, call.real("alpha"), 0});
}

Symbols import_gelu(Call& call) {
  const bool tanh = call.has("approximate") && call.text("approximate") == "tanh";
  return apply(call, "gelu", {tanh ? Function::kGeluTanh : Function::kGelu, 0, 0});
}

Symbols import_clamp(Call& call) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double low = call.has("min") ? call.real("min") : -kInfinity;
  const double high = call.has("max") ? call.real("max") : kInfinity;
  return apply(call, "clamp", {Function::kClamp, low, high});
}

Symbols import_relu6(Call& call) { return apply(call, "relu6", {Function::kHardtanh, 0, 6}); }

Symbols import_rrelu(Call& call) {
  if (call.flag("training"))
    call.refuse("draws random slopes in training; use nn.LeakyReLU, or model.eval()");
  const double slope = (call.real("lower") + call.real("upper")) / 2;
  return apply(call, "leaky_relu", {Function::kLeakyRelu, slope, 0});
}

Symbols import_prelu(Call& call) {
  const ValueId x = call.image("self");
  const auto weight = call.weight("weight");
  if (!weight || weight->view.size() != 1) call.refuse("the weight is not a vector");
  const std::string name = call.bind_weights("prelu", {{"weight", weight}});
  return call.result(prelu(call.graph(), x, name, {weight->view[0], 0.25}));
}

Symbols import_softmax_form(Call& call, SoftmaxOptions::Form form) {
  const TensorPointer x = call.tensor("self");
  const bool logarithm = form == SoftmaxOptions::Form::kLogSoftmax;
  SoftmaxOptions options{form};
  options.groups =
      bring_to_channels(call.graph(), *x, call.axis("dim", *x), call.name("rearrange"));
  const std::string kind = logarithm ? "log_softmax" : "softmax";
  return call.result(softmax(call.graph(), x->value, call.name(kind), options), x->view);
}

}  // namespace

std::vector<Operator> pointwise_operators() {
  std::vector<Operator> operators{
      {{"aten::relu"}, "relu", import_relu},
      {{"aten::relu6"}, "relu6", import_relu6},
      with("leaky_relu", Function::kLeakyRelu, "negative_slope"),
      {{"aten::rrelu"}, "leaky relu with the mean slope in eval mode", import_rrelu},
      {{"aten::elu"}, "elu", import_elu},
      with("celu", Function::kCelu, "alpha"),
      with("hardtanh", Function::kHardtanh, "min_val", "max_val"),
      with("softplus", Function::kSoftplus, "beta", "threshold"),
      {{"aten::gelu"}, "gelu, exact or by tanh", import_gelu},
      {{"aten::clamp", "aten::clamp_min", "aten::clamp_max"}, "clamp by numbers", import_clamp},
      {{"aten::prelu"}, "prelu with one slope, or one per channel", import_prelu},
      {{"aten::softmax"},
       "softmax over any axis; over pixels it needs all of them",
       [](Call& call) { return import_softmax_form(call, SoftmaxOptions::Form::kSoftmax); }},
      {{"aten::log_softmax"}, "logarithm of the softmax", [](Call& call) {
         return import_softmax_form(call, SoftmaxOptions::Form::kLogSoftmax);
       }}};
  const std::vector<std::pair<const char*, Function>> functions{
      {"selu", Function::kSelu},
      {"silu", Function::kSilu},
      {"mish", Function::kMish},
      {"sigmoid", Function::kSigmoid},
      {"tanh", Function::kTanh},
      {"log_sigmoid", Function::kLogSigmoid},
      {"hardswish", Function::kHardswish},
      {"hardsigmoid", Function::kHardsigmoid},
      {"exp", Function::kExp},
      {"log", Function::kLog},
      {"log1p", Function::kLog1p},
      {"sqrt", Function::kSqrt},
      {"rsqrt", Function::kRsqrt},
      {"reciprocal", Function::kReciprocal},
      {"abs", Function::kAbs},
      {"neg", Function::kNegate},
      {"square", Function::kSquare},
      {"sin", Function::kSin},
      {"cos", Function::kCos}};
  for (const auto& [name, function] : functions) operators.push_back(plain(name, function));
  return operators;
}

}  // namespace tessera
