#include <fmt/format.h>

#include <optional>

#include "tessera/import/arrange.h"
#include "tessera/import/operators.h"
#include "tessera/import/weight_expression.h"
#include "tessera/import/weight_form.h"
#include "tessera/ops/pointwise/arithmetic.h"
#include "tessera/ops/pointwise/broadcast.h"
#include "tessera/ops/pointwise/pointwise.h"

namespace tessera {
namespace {

using Function = PointwiseFunction;

struct Names {
  std::string left = "self";
  std::string right = "other";
};

Symbols affine(Call& call, const TensorPointer& x, const std::string& kind, double a, double b) {
  const PointwiseOptions options{Function::kAffine, a, b};
  const ValueId of = x->value;
  const ValueId result = pointwise(call.graph(), of, call.name(kind), options);
  if (b == 0) call.interpreter().scalings()[result] = {of, a};
  return call.result(result, x->view);
}

/// The value times `factor`, for add's and sub's alpha.
ValueId scaled(Call& call, ValueId value, double factor) {
  if (factor == 1) return value;
  return pointwise(call.graph(), value, call.name("scale"), {Function::kAffine, factor, 0});
}

/// A weight or constant that the code joins with a tensor.
struct WeightOperand {
  std::string name;              // for messages
  Shape shape;                   // as the code sees it
  ExpressionPointer expression;  // null: a constant
  at::Tensor constant;
  std::optional<WeightSymbol> stored;  // as it lies in the module
};

WeightOperand weight_operand_of(Call& call, const std::string& name) {
  if (const auto* computed = call.find<std::shared_ptr<ComputedSymbol>>(name)) {
    const ExpressionPointer& expression = (*computed)->expression;
    return {"that is computed", expression->value.sizes().vec(), expression, {}, {}};
  }
  const std::optional<WeightSymbol> weight = call.weight(name);
  if (!weight) call.refuse("has None as an operand");
  if (weight->trainable) return {weight->name, weight->view, expression_of(*weight), {}, weight};
  return {weight->name, weight->view, nullptr, weight->tensor, weight};
}

/// The weight in the form that the tensor's value needs; moved where the code has other orders.
WeightSymbol weight_in_form(Call& call, const WeightOperand& weight, const WeightForm& form) {
  if (!form.moves)
    return weight.stored ? *weight.stored : call.interpreter().derive(weight.expression);
  if (!weight.expression) return call.interpreter().constant(form.moved(weight.constant));
  return call.interpreter().derive(form.moved(weight.expression));
}

/// x (how) weight. The weight's axes are those that the code sees, aligned at the right.
Symbols with_weight(Call& call, const TensorPointer& x, Arithmetic how, const WeightOperand& weight,
                    bool reversed) {
  const Shape value = call.type(x->value).shape();
  if (std::ssize(weight.shape) > x->view.num_axes())
    call.refuse(fmt::format("the weight {} has more axes than the tensor", weight.name));
  const std::optional<WeightForm> form = form_of_weight(weight.shape, x->view, value);
  if (!form)
    call.refuse(fmt::format("joins {} with the weight {} of {}", to_string(x->view.shape()),
                            weight.name, to_string(weight.shape)));
  WeightSymbol stored = weight_in_form(call, weight, *form);
  stored.view = stored.tensor.sizes().vec();  // the operator reshapes it
  const std::string name = call.bind_weights("arithmetic", {{"weight", stored}});
  ParameterOperand operand;
  operand.shape = form->shape;
  operand.stored = stored.view;
  operand.side = reversed ? ParameterOperand::Side::kLeft : ParameterOperand::Side::kRight;
  return call.result(arithmetic_with_parameter(call.graph(), x->value, name, how, operand),
                     x->view);
}

/// x (how) number, or number (how) x where `reversed`.
Symbols with_number(Call& call, const TensorPointer& x, Arithmetic how, double number,
                    bool reversed) {
  switch (how) {
    case Arithmetic::kAdd:
      return affine(call, x, "add", 1, number);
    case Arithmetic::kSubtract:
      return reversed ? affine(call, x, "sub", -1, number) : affine(call, x, "sub", 1, -number);
    case Arithmetic::kMultiply:
      return affine(call, x, "mul", number, 0);
    case Arithmetic::kDivide: {
      if (!reversed) return affine(call, x, "div", 1 / number, 0);
      const ValueId inverse =
          pointwise(call.graph(), x->value, call.name("reciprocal"), {Function::kReciprocal, 0, 0});
      return call.result(scaled(call, inverse, number), x->view);
    }
    default: {  // not a clamp: where both are equal, each side gets half of the gradient
      const at::Tensor constant = at::full({1}, number, at::kDouble);
      return with_weight(call, x, how,
                         {"", {1}, nullptr, constant, call.interpreter().constant(constant)},
                         reversed);
    }
  }
}

/// Whether broadcasting the values themselves is what the code does, and how it sees the result.
std::optional<CodeView> joined_view(Call& call, const TensorSymbol& a, const TensorSymbol& b) {
  const Shape shape_a = call.type(a.value).shape(), shape_b = call.type(b.value).shape();
  const bool left_is_larger = size_of(a.view.digits()) >= size_of(b.view.digits());
  const auto order = left_is_larger ? a.view.order(shape_a) : b.view.order(shape_b);
  if (!order) return std::nullopt;
  const bool both_plain = a.view.is_plain(shape_a) && b.view.is_plain(shape_b);
  if (!both_plain && !(a.view.has_order(*order, shape_a) && b.view.has_order(*order, shape_b)))
    return std::nullopt;
  const std::optional<Shape> shape = broadcast_shape(shape_a, shape_b);
  if (!shape) return std::nullopt;
  return both_plain ? CodeView::plain(*shape) : CodeView::plain(*shape).permuted(*order);
}

/// What is stretched need not be read: arithmetic broadcasts by itself.
CodeView without_stretching(CodeView view) {
  for (int axis = 0; axis < view.num_axes(); ++axis)
    if (view[axis].size() == 1 && view[axis][0].axis == ViewDigit::kStretched)
      view = view.with_axis(axis, {});
  return view;
}

Symbols of_tensors(Call& call, const Names& names, Arithmetic how, double alpha) {
  TensorSymbol a = *call.tensor_or_expanded(names.left);
  TensorSymbol b = *call.tensor_or_expanded(names.right);
  const std::optional<Shape> seen = broadcast_shape(a.view.shape(), b.view.shape());
  if (!seen)
    call.refuse(
        fmt::format("joins {} with {}", to_string(a.view.shape()), to_string(b.view.shape())));
  a.view = without_stretching(a.view);
  b.view = without_stretching(b.view);
  b.value = scaled(call, b.value, alpha);
  const std::string name = call.name(call.op().substr(6)), moves = call.name("rearrange");
  std::optional<CodeView> view = joined_view(call, a, b);
  if (!view) {  // the smaller one is brought into the form of the larger one, or both into that
                // which the code sees
    const bool left_is_larger = size_of(a.view.digits()) >= size_of(b.view.digits());
    TensorSymbol& large = left_is_larger ? a : b;
    TensorSymbol& small = left_is_larger ? b : a;
    if (const auto value = conformed(call.graph(), small, large, moves)) {
      small.value = *value;
      view = large.view;
    } else {
      call.image(a);
      call.image(b);
      view = CodeView::plain(*broadcast_shape(a.view.shape(), b.view.shape()));
    }
  }
  const ValueId result = arithmetic(call.graph(), a.value, b.value, name, how);
  return call.result(result, *view->stretched(*seen));
}

/// alpha multiplies `other` in add and sub.
Symbols import_binary(Call& call, Arithmetic how, const Names& names = {}) {
  const double alpha = call.has("alpha") ? call.real("alpha") : 1;
  if (const auto* counter = std::get_if<CounterSymbol>(&call[names.left])) {
    if (how != Arithmetic::kAdd) call.refuse("computes with " + counter->name);
    const int64_t by = call.integer(names.right) * static_cast<int64_t>(alpha);
    if (call.in_place()) call.interpreter().count_up(*counter, by);
    return {
        CounterSymbol{counter->name, counter->tensor, call.in_place() ? 0 : counter->pending + by}};
  }
  const bool left = call.is_tensor(names.left), right = call.is_tensor(names.right);
  if (left && right) return of_tensors(call, names, how, alpha);
  if (!left && !right)
    call.refuse("computes with weights alone; let the module store the result as its weight");
  const TensorPointer x = call.tensor(left ? names.left : names.right);
  const std::string& other = left ? names.right : names.left;
  if (const auto number = call.scalar(other)) {
    if (!left && alpha != 1) call.refuse("has alpha with a number on the left");
    return with_number(call, x, how, *number * (left ? alpha : 1), !left);
  }
  if (alpha != 1) call.refuse("has alpha with a weight; multiply first");
  return with_weight(call, x, how, weight_operand_of(call, other), !left);
}

Symbols import_divide(Call& call) {
  if (call.has("rounding_mode")) call.refuse("rounds; a rounded quotient has no gradient");
  return import_binary(call, Arithmetic::kDivide);
}

Symbols import_power(Call& call) {
  const TensorPointer x = call.tensor("self");
  const double exponent = call.real("exponent");
  const PointwiseOptions options = exponent == 2 ? PointwiseOptions{Function::kSquare, 0, 0}
                                                 : PointwiseOptions{Function::kPower, exponent, 0};
  return call.result(pointwise(call.graph(), x->value, call.name("pow"), options), x->view);
}

Symbols constant_like(Call& call, double number) {
  return affine(call, call.tensor("self"), "constant", 0, number);
}

Operator binary(const std::vector<std::string>& names, const std::string& becomes, Arithmetic how) {
  return {names, becomes, [how](Call& call) { return import_binary(call, how); }};
}

}  // namespace

std::vector<Operator> arithmetic_operators() {
  const std::string broadcasts = ", with broadcasting; tensors, weights of the module, numbers";
  return {
      binary({"aten::add"}, "sum" + broadcasts, Arithmetic::kAdd),
      binary({"aten::sub", "aten::subtract"}, "difference" + broadcasts, Arithmetic::kSubtract),
      binary({"aten::mul", "aten::multiply"}, "product" + broadcasts, Arithmetic::kMultiply),
      {{"aten::div", "aten::divide", "aten::true_divide"},
       "quotient" + broadcasts + "; not rounded",
       import_divide},
      binary({"aten::maximum"}, "larger of two" + broadcasts, Arithmetic::kMaximum),
      binary({"aten::minimum"}, "smaller of two" + broadcasts, Arithmetic::kMinimum),
      {{"aten::rsub"},
       "difference, reversed",
       [](Call& call) {
         return import_binary(call, Arithmetic::kSubtract, {.left = "other", .right = "self"});
       }},
      {{"aten::pow"}, "power with a number as exponent", import_power},
      {{"aten::zeros_like"}, "zeros, as 0 * x", [](Call& call) { return constant_like(call, 0); }},
      {{"aten::ones_like"}, "ones, as 0 * x + 1", [](Call& call) {
         return constant_like(call, 1);
       }}};
}

}  // namespace tessera
