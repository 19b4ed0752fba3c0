// torch.cat of tensors of the network, and of what has their shape but is not one: weights (class
// tokens), constants, tensors of one number.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "tessera/import/arrange.h"
#include "tessera/import/operators.h"
#include "tessera/import/repeat.h"
#include "tessera/import/weight_arithmetic.h"
#include "tessera/import/weight_memory.h"
#include "tessera/ops/shape/concat.h"

namespace tessera {
namespace {

/// The axes of the values that the code's axes are, the same for all of them; none: each has to be
/// brought into another form.
std::optional<std::vector<int>> common_order(Call& call,
                                             const std::vector<TensorPointer>& tensors) {
  std::optional<std::vector<int>> order;
  for (const TensorPointer& tensor : tensors) {
    const Shape value = call.type(tensor->value).shape();
    if (!order) order = tensor->view.order(value);
    if (!order || !tensor->view.has_order(*order, value)) return std::nullopt;
  }
  return order;
}

/// Whether the code has the channels of all of them last, as tokens have.
bool have_channels_last(Call& call, const std::vector<TensorPointer>& tensors) {
  return std::all_of(tensors.begin(), tensors.end(), [&](const TensorPointer& x) {
    const int last = x->view.num_axes() - 1;
    return last > 1 && x->view.is_whole(last, 1, call.type(x->value).shape()) &&
           why_not_plain(call.graph(), *x).empty();
  });
}

/// Brings them into forms with one order of axes, which is returned.
std::vector<int> bring_into_one_order(Call& call, const std::vector<TensorPointer>& tensors) {
  if (const auto order = common_order(call, tensors)) return *order;
  std::vector<int> order(static_cast<size_t>(tensors[0]->view.num_axes()));
  std::iota(order.begin(), order.end(), 0);
  if (!have_channels_last(call, tensors)) {
    for (const TensorPointer& tensor : tensors) call.image(*tensor);
    return order;
  }
  for (const TensorPointer& tensor : tensors) {
    std::vector<ViewDigits> axes = tensor->view.axes();
    std::rotate(axes.begin() + 1, axes.end() - 1, axes.end());
    arrange(call.graph(), *tensor, axes, call.name("rearrange"));
  }
  std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  return order;
}

/// Class tokens are expanded over the batch; what they are expanded from is the same for each
/// sample. Anything else stays, and is refused where it has an element for each.
Symbol without_batch(const Symbol& part, const Shape& shape) {
  if (shape[0] == 1) return part;
  const auto* constant = std::get_if<c10::IValue>(&part);
  if (constant && constant->isTensor()) {
    const at::Tensor all = constant->toTensor(), one = all.slice(0, 0, 1);
    return at::equal(all, one.expand_as(all)) ? Symbol(c10::IValue(one)) : part;
  }
  const auto* symbol = std::get_if<ComputedPointer>(&part);
  if (!symbol || (*symbol)->expression->function != WeightFunction::kExpand) return part;
  const ExpressionPointer& expanded = (*symbol)->expression->operands[0];
  if (expanded->value.dim() == std::ssize(shape) && expanded->value.size(0) != 1) return part;
  Shape of_one = shape;
  of_one[0] = 1;
  return computed_weight(computed(WeightFunction::kExpand, {expanded}, of_one));
}

Shape shape_of_part(Call& call, const Symbol& item) {
  if (const auto* made = std::get_if<std::shared_ptr<MadeSymbol>>(&item)) return (*made)->shape;
  if (const auto* symbol = std::get_if<ComputedPointer>(&item))
    return (*symbol)->expression->value.sizes().vec();
  if (const auto* weight = std::get_if<WeightSymbol>(&item)) return weight->view;
  if (const auto* value = std::get_if<c10::IValue>(&item); value && value->isTensor())
    return value->toTensor().sizes().vec();
  call.refuse("joins " + describe(item) + "; join tensors of the network");
}

/// A value for what is not a tensor of the network, beside one that is, whose axes have that order.
ValueId value_beside(Call& call, const Symbol& item, const TensorSymbol& other, int axis,
                     const std::vector<int>& order) {
  const Shape own = shape_of_part(call, item);
  Shape wanted = other.view.shape();
  if (own.size() == wanted.size()) wanted[axis] = own[axis];
  if (own != wanted)
    call.refuse(fmt::format("joins {} with {}; all sizes but that of axis {} must be equal",
                            to_string(own), to_string(other.view.shape()), axis));
  double number = 0;
  const auto* made = std::get_if<std::shared_ptr<MadeSymbol>>(&item);
  if (made && (*made)->holds != MadeSymbol::Holds::kNumber)
    call.refuse("joins " + describe(item) + ", which has no known number");
  if (made) number = (*made)->number;
  TensorSymbol filled;
  filled.value = filled_beside(call, other.value, order[axis], own[axis], number);
  filled.view = CodeView::plain(call.type(filled.value).shape()).permuted(order);
  if (made) return filled.value;
  const Symbol weight = without_batch(item, own);
  return with_weight(call, filled, Arithmetic::kAdd, weight, ParameterOperand::Side::kRight);
}

Symbols import_cat(Call& call) {
  std::vector<Symbol> items = call.items("tensors");
  std::vector<TensorPointer> tensors;
  for (Symbol& item : items) {
    item = settled(item);
    const auto* tensor = std::get_if<TensorPointer>(&item);
    if (!tensor) continue;
    if (!(*tensor)->stale.empty()) call.refuse("reads a tensor too late: " + (*tensor)->stale);
    if (!tensors.empty() && tensors[0]->view.num_axes() != (*tensor)->view.num_axes())
      call.refuse("joins tensors of different numbers of axes");
    tensors.push_back((*tensor)->view.is_stretched() ? copy_stretched(call, **tensor) : *tensor);
  }
  if (tensors.empty()) call.refuse("joins no tensor of the network");
  const int axis = call.axis("dim", *tensors[0]);
  if (items.size() == 1) return {make_tensor(tensors[0]->value, tensors[0]->view)};
  const std::vector<int> order = bring_into_one_order(call, tensors);
  if (order[axis] == 0) call.refuse("joins along the batch; join channels or space");
  std::vector<ValueId> values;
  auto next = tensors.begin();
  for (const Symbol& item : items)
    values.push_back(std::holds_alternative<TensorPointer>(item)
                         ? (*next++)->value
                         : value_beside(call, item, *tensors[0], axis, order));
  const ValueId joined = concat(call.graph(), values, call.name("cat"), order[axis]);
  return call.result(joined, CodeView::plain(call.type(joined).shape()).permuted(order));
}

}  // namespace

std::vector<Operator> concat_operators() {
  return {{{"aten::cat", "aten::concat", "aten::concatenate"},
           "concatenation along channels or space; also with zeros and other numbers, and with "
           "weights that are the same for each sample (class tokens)",
           import_cat}};
}

}  // namespace tessera
