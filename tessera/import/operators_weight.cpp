// Arithmetic on weights in forward(): remembered as an expression, which becomes a derived weight
// where an operator of the network reads it.

#include <fmt/format.h>

#include <limits>
#include <map>

#include "tessera/import/operators.h"
#include "tessera/import/operators_weight.h"
#include "tessera/import/weight_memory.h"

namespace tessera {
namespace {

using F = WeightFunction;

ExpressionPointer affine_weight(const ExpressionPointer& x, double a, double b) {
  return computed(F::kAffine, {x}, {}, {a, b});
}

ExpressionPointer binary_weight(Call& call, const std::string& op) {
  static const std::map<std::string, F> functions{{"aten::add", F::kAdd},
                                                  {"aten::sub", F::kSubtract},
                                                  {"aten::mul", F::kMultiply},
                                                  {"aten::div", F::kDivide}};
  const double alpha = call.has("alpha") ? call.real("alpha") : 1;
  if (call.has("rounding_mode")) call.refuse("rounds; a rounded quotient has no gradient");
  const auto number = call.scalar("other");
  const auto left = call.scalar("self");
  if (op == "aten::rsub") {
    if (!number) call.refuse("computes a weight from " + describe(call["other"]));
    return affine_weight(needed_operand(call, "self"), -alpha, *number);
  }
  if (number && !call.find<ComputedPointer>("other")) {
    const ExpressionPointer x = needed_operand(call, "self");
    if (op == "aten::add") return affine_weight(x, 1, alpha * *number);
    if (op == "aten::sub") return affine_weight(x, 1, -alpha * *number);
    return affine_weight(x, op == "aten::mul" ? *number : 1 / *number, 0);
  }
  if (left) {
    const ExpressionPointer x = needed_operand(call, "other");
    if (op == "aten::add") return affine_weight(x, alpha, *left);
    if (op == "aten::sub") return affine_weight(x, -alpha, *left);
    if (op == "aten::mul") return affine_weight(x, *left, 0);
    return affine_weight(computed(F::kReciprocal, {x}), *left, 0);
  }
  ExpressionPointer other = needed_operand(call, "other");
  if (alpha != 1) other = affine_weight(other, alpha, 0);
  return computed(functions.at(op), {needed_operand(call, "self"), other});
}

/// Whether to keep the axes, and which they are.
std::vector<int64_t> reduction_numbers(Call& call, std::optional<int64_t> correction) {
  std::vector<int64_t> numbers{call.has("keepdim") && call.flag("keepdim")};
  if (correction) numbers.push_back(*correction);
  if (call.has("dim"))
    for (int64_t axis : call.integers("dim")) numbers.push_back(axis);
  return numbers;
}

int64_t correction_of(Call& call) {
  const int64_t correction = call.has("correction") ? call.integer("correction")
                             : call.has("unbiased") ? int64_t{call.flag("unbiased")}
                                                    : 1;
  if (correction != 0 && correction != 1)
    call.refuse(fmt::format("has the correction {}; give 0 or 1", correction));
  return correction;
}

ExpressionPointer normed_weight(Call& call) {
  double order = 2;
  for (const char* name : {"p", "ord"})
    if (call.has(name)) order = call.real(name);
  return computed(F::kNorm, {needed_operand(call, "self")}, reduction_numbers(call, {}), {order});
}

/// Standardisation by the batch norm of a weight that is seen as 1 x channels x rest.
ExpressionPointer standardised(Call& call) {
  const ExpressionPointer x = needed_operand(call, "input");
  const bool by_batch = call.flag("training") || !call.has("running_mean");
  if (!by_batch || call.has("running_mean"))
    call.refuse("normalises a weight by running statistics; leave them out");
  std::vector<int64_t> axes{1, 0, 0};  // keeps the axes, without correction
  for (int64_t axis = 2; axis < x->value.dim(); ++axis) axes.push_back(axis);
  const ExpressionPointer variance = computed(F::kVariance, {x}, axes);
  axes.erase(axes.begin() + 1);
  const ExpressionPointer mean = computed(F::kMean, {x}, axes);
  const ExpressionPointer inverse =
      computed(F::kRsqrt, {affine_weight(variance, 1, call.real("eps"))});
  ExpressionPointer result = computed(F::kMultiply, {computed(F::kSubtract, {x, mean}), inverse});
  std::vector<int64_t> per_channel(static_cast<size_t>(x->value.dim()), 1);
  per_channel[1] = -1;
  const auto joined = [&](const char* name, F how) {
    if (!call.has(name)) return;
    const ExpressionPointer factor =
        computed(F::kReshape, {needed_operand(call, name)}, per_channel);
    result = computed(how, {result, factor});
  };
  joined("weight", F::kMultiply);
  joined("bias", F::kAdd);
  return result;
}

/// A layer that computes a weight from others, such as biases from positions.
ExpressionPointer linear_weight(Call& call) {
  const ExpressionPointer x = needed_operand(call, "input");
  const ExpressionPointer weight = needed_operand(call, "weight");
  if (x->value.dim() < 1 || weight->value.dim() != 2) call.refuse("the weight is not a matrix");
  Shape shape = x->value.sizes().vec();
  const ExpressionPointer rows = computed(F::kReshape, {x}, {-1, shape.back()});
  ExpressionPointer y = computed(F::kMatmul, {rows, computed(F::kPermute, {weight}, {1, 0})});
  if (call.has("bias")) y = computed(F::kAdd, {y, needed_operand(call, "bias")});
  shape.back() = weight->value.size(0);
  return computed(F::kReshape, {y}, shape);
}

/// What zero_(), fill_() and copy_() write.
std::optional<ExpressionPointer> written_value(Call& call, const std::string& op) {
  if (op != "aten::zero" && op != "aten::fill" && op != "aten::copy") return std::nullopt;
  const ExpressionPointer x = needed_operand(call, "self");
  if (op == "aten::zero") return affine_weight(x, 0, 0);
  const std::string source = op == "aten::fill" ? "value" : "src";
  if (const auto number = call.scalar(source)) return affine_weight(x, 0, *number);
  return needed_operand(call, source);
}

std::optional<ExpressionPointer> plain_function(Call& call, const std::string& op) {
  static const std::map<std::string, F> functions{
      {"aten::neg", F::kNegate},  {"aten::sqrt", F::kSqrt},
      {"aten::rsqrt", F::kRsqrt}, {"aten::reciprocal", F::kReciprocal},
      {"aten::abs", F::kAbs},     {"aten::exp", F::kExp},
      {"aten::tanh", F::kTanh},   {"aten::sigmoid", F::kSigmoid},
      {"aten::relu", F::kRelu}};
  if (const auto found = functions.find(op); found != functions.end())
    return computed(found->second, {needed_operand(call, "self")});
  if (op == "aten::square") return computed(F::kPower, {needed_operand(call, "self")}, {}, {2});
  if (op == "aten::pow")
    return computed(F::kPower, {needed_operand(call, "self")}, {}, {call.real("exponent")});
  if (op == "aten::clamp" || op == "aten::clamp_min" || op == "aten::clamp_max") {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    return computed(F::kClamp, {needed_operand(call, "self")}, {},
                    {call.has("min") ? call.real("min") : -kInfinity,
                     call.has("max") ? call.real("max") : kInfinity});
  }
  return std::nullopt;
}

std::optional<ExpressionPointer> expression(Call& call, const std::string& op) {
  if (op == "aten::add" || op == "aten::sub" || op == "aten::mul" || op == "aten::div" ||
      op == "aten::rsub")
    return binary_weight(call, op);
  if (auto result = plain_function(call, op)) return result;
  if (op == "aten::sum" || op == "aten::mean")
    return computed(op == "aten::sum" ? F::kSum : F::kMean, {needed_operand(call, "self")},
                    reduction_numbers(call, {}));
  if (op == "aten::var" || op == "aten::std")
    return computed(op == "aten::var" ? F::kVariance : F::kDeviation,
                    {needed_operand(call, "self")}, reduction_numbers(call, correction_of(call)));
  if (op == "aten::norm" || op == "aten::linalg_vector_norm" || op == "aten::frobenius_norm")
    return normed_weight(call);
  if (op == "aten::mv")
    return computed(F::kMatmul, {needed_operand(call, "self"), needed_operand(call, "vec")});
  if (op == "aten::vdot")
    return computed(F::kMatmul, {needed_operand(call, "self"), needed_operand(call, "other")});
  if (op == "aten::dot")
    return computed(F::kMatmul, {needed_operand(call, "self"), needed_operand(call, "tensor")});
  if (op == "aten::mm" || op == "aten::matmul")
    return computed(F::kMatmul, {needed_operand(call, "self"),
                                 needed_operand(call, op == "aten::mm" ? "mat2" : "other")});
  if (op == "aten::_weight_norm")
    return computed(F::kWeightNorm, {needed_operand(call, "v"), needed_operand(call, "g")},
                    {call.integer("dim")});
  if (op == "aten::linear") return linear_weight(call);
  if (auto result = gathered_weight(call, op)) return result;
  if (op == "aten::batch_norm") return standardised(call);
  return written_value(call, op);
}

/// What is written into a buffer (out=self.u): spectral norm's power iteration.
Symbols written(Call& call, ExpressionPointer value) {
  const auto* buffer = call.find<WeightSymbol>("out");
  const ComputedPointer* again = call.find<ComputedPointer>("out");
  if (again && (*again)->expression->updated)
    buffer = &*(*again)->expression->updated;  // the next iteration
  else if (!buffer || buffer->trainable || !buffer->persistent)
    call.refuse("writes into " + describe(call["out"]) + "; Tessera lets forward() write buffers");
  else
    call.interpreter().note_update(call.node(), *buffer);
  auto update = std::make_shared<WeightExpression>(*computed(F::kUpdate, {std::move(value)}, {0}));
  update->updated = *buffer;
  if (update->value.sizes() != buffer->tensor.sizes())
    call.refuse("changes the shape of the buffer " + buffer->name);
  if (!again) return Symbols{computed_weight(std::move(update))};
  (*again)->expression = std::move(update);
  return {*again};
}

std::optional<Symbols> numbers_of(Call& call, const std::string& op, const at::Tensor& value) {
  if (op == "aten::dim") return Symbols{c10::IValue(value.dim())};
  if (op == "aten::numel") return Symbols{c10::IValue(value.numel())};
  if (op != "aten::size") return std::nullopt;
  if (!call.has("dim")) return Symbols{known(c10::IValue(value.sizes().vec()))};
  return Symbols{c10::IValue(value.size(call.integer("dim")))};
}

}  // namespace

ExpressionPointer needed_operand(Call& call, const std::string& name) {
  if (const auto operand = weight_operand(call, call[name])) return *operand;
  call.refuse(fmt::format("computes a weight from {}", describe(call[name])));
}

std::optional<ExpressionPointer> weight_operand(Call& call, const Symbol& symbol) {
  if (const auto* result = std::get_if<ComputedPointer>(&symbol)) return (*result)->expression;
  if (const auto* weight = std::get_if<WeightSymbol>(&symbol)) return expression_of(*weight);
  const auto* constant = std::get_if<c10::IValue>(&symbol);
  if (constant && constant->isTensor() && constant->toTensor().defined() &&
      constant->toTensor().dim() > 0)
    return expression_of(call.interpreter().constant(constant->toTensor()));
  return std::nullopt;
}

std::optional<Symbols> run_on_weights(Call& call) {
  if (call.op() == "aten::cat" || call.op() == "aten::concat" || call.op() == "aten::concatenate")
    return joined_weights(call);
  bool any_weight = false;
  for (const Symbol& argument : call.arguments()) {
    if (std::holds_alternative<TensorPointer>(argument)) return std::nullopt;
    any_weight = any_weight || std::holds_alternative<WeightSymbol>(argument) ||
                 std::holds_alternative<ComputedPointer>(argument);
  }
  if (!any_weight) return std::nullopt;
  const std::string op = call.in_place() ? call.op().substr(0, call.op().size() - 1) : call.op();
  const ComputedPointer* self = call.find<ComputedPointer>("self");
  if (op == "aten::clone") return Symbols{computed_weight(needed_operand(call, "self"))};
  if (self)
    if (auto numbers = numbers_of(call, op, (*self)->expression->value)) return numbers;
  if (auto views = view_of_weight(call, op)) return views;
  const auto result = expression(call, op);
  if (!result) return std::nullopt;
  if (call.has("out")) return written(call, *result);
  if (!call.in_place()) return Symbols{computed_weight(*result)};
  const std::string why = self ? why_not_writable(**self) : "a network must not change itself";
  if (!why.empty()) call.refuse("changes " + describe(call["self"]) + " in place: " + why);
  write_weight(*self, *result);
  return Symbols{*self};
}

}  // namespace tessera
