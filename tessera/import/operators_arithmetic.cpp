#include <fmt/format.h>

#include <algorithm>

#include "tessera/import/operators.h"
#include "tessera/import/repeat.h"
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
  return call.result_like(result, *x);
}

/// The value times `factor`, for add's and sub's alpha.
ValueId scaled(Call& call, ValueId value, double factor) {
  if (factor == 1) return value;
  return pointwise(call.graph(), value, call.name("scale"), {Function::kAffine, factor, 0});
}

/// x (how) weight. The weight's axes are those that the code sees, aligned at the right.
Symbols with_weight(Call& call, const TensorPointer& x, Arithmetic how, const WeightSymbol& weight,
                    bool reversed) {
  const int num_axes = static_cast<int>(x->order.size());
  Shape shape = weight.view;
  if (static_cast<int>(shape.size()) > num_axes)
    call.refuse(fmt::format("the weight {} has more axes than the tensor", weight.name));
  const bool plain = std::is_sorted(x->order.begin(), x->order.end());
  if (!plain) {  // bring it into the order of the value: [C] against channels last is [C, 1, 1]
    shape.insert(shape.begin(), num_axes - shape.size(), 1);
    Shape own(num_axes);
    for (int i = 0; i < num_axes; ++i) own[x->order[i]] = shape[i];
    const bool moves_data =
        std::count_if(own.begin(), own.end(), [](int64_t n) { return n > 1; }) > 1;
    if (moves_data) call.refuse("joins a permuted tensor with a weight of several axes");
    shape = own;
  }
  WeightSymbol stored = weight;
  stored.view = weight.tensor.sizes().vec();  // the operator reshapes it
  const std::string name = call.bind_weights("arithmetic", {{"weight", stored}});
  ParameterOperand operand;
  operand.shape = shape;
  operand.stored = stored.view;
  operand.side = reversed ? ParameterOperand::Side::kLeft : ParameterOperand::Side::kRight;
  return call.result_like(arithmetic_with_parameter(call.graph(), x->value, name, how, operand),
                          *x);
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
      return call.result_like(scaled(call, inverse, number), *x);
    }
    default: {  // not a clamp: where both are equal, each side gets half of the gradient
      const at::Tensor constant = at::full({1}, number, at::kDouble);
      return with_weight(call, x, how, call.interpreter().constant(constant), reversed);
    }
  }
}

/// The shape that the code sees of a result, in the order of the axes of the operand with more.
std::optional<Shape> seen_shape(Call& call, const TensorSymbol& a, const TensorSymbol& b) {
  return broadcast_shape(call.shape(a), call.shape(b));
}

/// The shape that it has if nothing is expanded.
std::optional<Shape> joined_shape(Call& call, TensorSymbol a, TensorSymbol b) {
  a.expanded.clear();
  b.expanded.clear();
  return seen_shape(call, a, b);
}

Symbols of_tensors(Call& call, const Names& names, Arithmetic how, double alpha) {
  TensorPointer a = call.tensor_or_expanded(names.left);
  TensorPointer b = call.tensor_or_expanded(names.right);
  if (a->order != b->order) {
    const bool plain = std::is_sorted(a->order.begin(), a->order.end()) &&
                       std::is_sorted(b->order.begin(), b->order.end());
    if (!plain) call.refuse("joins tensors whose axes are permuted differently");
  }
  // Where one operand was expanded, the other one usually has that shape, and nothing is to do.
  for (TensorPointer* operand : {&a, &b})
    if (!(*operand)->expanded.empty() && joined_shape(call, *a, *b) != seen_shape(call, *a, *b))
      *operand = copy_expanded(call, *operand);
  const ValueId right = scaled(call, b->value, alpha);
  const ValueId result =
      arithmetic(call.graph(), a->value, right, call.name(call.op().substr(6)), how);
  return call.result_like(result, a->order.size() >= b->order.size() ? *a : *b);
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
  const auto weight = call.weight(other);
  if (!weight) call.refuse("has None as an operand");
  return with_weight(call, x, how, *weight, !left);
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
  return call.result_like(pointwise(call.graph(), x->value, call.name("pow"), options), *x);
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
