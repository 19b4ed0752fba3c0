#include <fmt/format.h>

#include <optional>
#include <set>

#include "tessera/import/arrange.h"
#include "tessera/import/operators.h"
#include "tessera/import/repeat.h"
#include "tessera/import/weight_arithmetic.h"
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

/// x (how) number, or number (how) x where `reversed`.
Symbols with_number(Call& call, const TensorPointer& x, Arithmetic how, double number,
                    bool reversed) {
  const auto side = reversed ? ParameterOperand::Side::kLeft : ParameterOperand::Side::kRight;
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
      const c10::IValue constant(at::full({1}, number, at::kDouble));
      return call.result(with_weight(call, *x, how, constant, side), x->view);
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

/// A copy of the smaller tensor where one axis of the larger one's value holds axes of the code of
/// which it has some, but not all: a number for each head, and channels that are heads x width.
TensorSymbol with_missing_parts(Call& call, const TensorSymbol& small, const TensorSymbol& large) {
  const int extra = large.view.num_axes() - small.view.num_axes();
  if (extra < 0) return small;
  std::set<int> present;  // axes of the larger one's value of which the smaller one has a part
  for (int axis = extra; axis < large.view.num_axes(); ++axis)
    if (!small.view[axis - extra].empty())
      for (const ViewDigit& digit : large.view[axis]) present.insert(digit.axis);
  Shape wanted = small.view.shape();
  for (int axis = extra; axis < large.view.num_axes(); ++axis)
    for (const ViewDigit& digit : large.view[axis])
      if (small.view[axis - extra].empty() && present.contains(digit.axis))
        wanted[axis - extra] = size_of(large.view[axis]);
  TensorSymbol copied = small;
  copied.view = *small.view.stretched(wanted);
  return copied.view.is_stretched() ? *copy_stretched(call, copied) : small;
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
    std::optional<ValueId> value = conformed(call.graph(), small, large, moves);
    if (!value)
      value = conformed(call.graph(), with_missing_parts(call, small, large), large, moves);
    if (value) {
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
  const auto side = left ? ParameterOperand::Side::kRight : ParameterOperand::Side::kLeft;
  return call.result(with_weight(call, *x, how, call[other], side), x->view);
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
