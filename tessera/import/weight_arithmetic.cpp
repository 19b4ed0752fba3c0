#include "tessera/import/weight_arithmetic.h"

#include <fmt/format.h>

#include <limits>
#include <optional>

#include "tessera/import/weight_expression.h"
#include "tessera/import/weight_form.h"

namespace tessera {
namespace {

/// A weight or constant that the code joins with a tensor.
struct WeightOperand {
  std::string name;              // for messages
  Shape shape;                   // as the code sees it
  ExpressionPointer expression;  // null: a constant
  at::Tensor constant;
  std::optional<WeightSymbol> stored;  // as it lies in the module
};

WeightOperand weight_operand_of(Call& call, const Symbol& symbol) {
  if (const auto* computed = std::get_if<std::shared_ptr<ComputedSymbol>>(&symbol)) {
    const ExpressionPointer& expression = (*computed)->expression;
    return {"that is computed", expression->value.sizes().vec(), expression, {}, {}};
  }
  const std::optional<WeightSymbol> weight = call.as_weight(symbol);
  if (!weight) call.refuse("has None as an operand");
  if (weight->trainable) return {weight->name, weight->view, expression_of(*weight), {}, weight};
  return {weight->name, weight->view, nullptr, weight->tensor, weight};
}

/// What a mask of minus infinity adds to scores, as a number that can be compared and rounded:
/// their exponential is zero either way.
at::Tensor finite_mask(Call& call, const at::Tensor& mask) {
  constexpr double kFarBelow = -1e30;  // float32 has it, too
  const at::Tensor masked = mask == -std::numeric_limits<double>::infinity();
  if (!masked.any().item<bool>()) return mask;
  if (masked.dim() > 0 && masked.all(-1).any().item<bool>())
    call.refuse("masks all of a row with minus infinity, of which a softmax is not a number");
  return mask.masked_fill(masked, kFarBelow);
}

/// The weight in the form that the tensor's value needs; moved where the code has other orders.
WeightSymbol weight_in_form(Call& call, const WeightOperand& weight, const WeightForm& form) {
  if (!form.moves)
    return weight.stored ? *weight.stored : call.interpreter().derive(weight.expression);
  if (!weight.expression) return call.interpreter().constant(form.moved(weight.constant));
  return call.interpreter().derive(form.moved(weight.expression));
}

}  // namespace

ValueId with_weight(Call& call, const TensorSymbol& x, Arithmetic how, const Symbol& symbol,
                    ParameterOperand::Side side) {
  WeightOperand weight = weight_operand_of(call, symbol);
  if (how == Arithmetic::kAdd && weight.constant.defined()) {
    const at::Tensor finite = finite_mask(call, weight.constant);
    if (!finite.is_same(weight.constant)) weight.stored = call.interpreter().constant(finite);
    weight.constant = finite;
  }
  const Shape value = call.type(x.value).shape();
  if (std::ssize(weight.shape) > x.view.num_axes())
    call.refuse(fmt::format("the weight {} has more axes than the tensor", weight.name));
  const std::optional<WeightForm> form = form_of_weight(weight.shape, x.view, value);
  if (!form)
    call.refuse(fmt::format("joins {} with the weight {} of {}", to_string(x.view.shape()),
                            weight.name, to_string(weight.shape)));
  WeightSymbol stored = weight_in_form(call, weight, *form);
  stored.view = stored.tensor.sizes().vec();  // the operator reshapes it
  const std::string name = call.bind_weights("arithmetic", {{"weight", stored}});
  ParameterOperand operand;
  operand.shape = form->shape;
  operand.stored = stored.view;
  operand.side = side;
  return arithmetic_with_parameter(call.graph(), x.value, name, how, operand);
}

}  // namespace tessera
