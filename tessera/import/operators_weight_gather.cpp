// Weights of the elements of others: at constant indices, several times, joined.

#include <fmt/format.h>

#include "tessera/base/text.h"
#include "tessera/import/operators_weight.h"
#include "tessera/import/weight_memory.h"

namespace tessera {
namespace {

using F = WeightFunction;

constexpr int64_t kMostCopiesOfWeight = 1 << 16;
/// The axis is one of a step's numbers.
constexpr int64_t kMostPositionsOfWeight = kMostStepNumbers - 1;

/// The code's positions of one axis, at constant indices: the biases of relative positions.
ExpressionPointer taken_weight(Call& call) {
  const ExpressionPointer x = needed_operand(call, "self");
  const std::vector<Symbol> indices = call.items("indices");
  std::vector<int64_t> numbers;
  Shape shape;
  for (size_t axis = 0; axis < indices.size(); ++axis) {
    const auto* index = std::get_if<c10::IValue>(&indices[axis]);
    if (index && index->isNone()) continue;
    const bool fits = index && index->isTensor() && numbers.empty() &&
                      static_cast<int64_t>(axis) < x->value.dim() &&
                      at::isIntegralType(index->toTensor().scalar_type(), /*includeBool=*/false);
    if (!fits)
      call.refuse(
          "takes elements of a weight by something else than one tensor of whole numbers that the "
          "module or its code holds");
    const int64_t size = x->value.size(static_cast<int64_t>(axis));
    const at::Tensor positions = index->toTensor().to(at::kLong).reshape({-1}).contiguous();
    if (positions.numel() > kMostPositionsOfWeight)
      call.refuse(fmt::format("takes {} positions of a weight; Tessera takes up to {}",
                              positions.numel(), kMostPositionsOfWeight));
    numbers.push_back(static_cast<int64_t>(axis));
    for (int64_t i = 0; i < positions.numel(); ++i) {
      const int64_t position = positions.data_ptr<int64_t>()[i];
      numbers.push_back(position < 0 ? position + size : position);
    }
    shape = x->value.sizes().vec();
    shape.erase(shape.begin() + static_cast<int64_t>(axis));
    const auto own = index->toTensor().sizes();
    shape.insert(shape.begin() + static_cast<int64_t>(axis), own.begin(), own.end());
  }
  if (numbers.empty()) call.refuse("takes elements of a weight without an index");
  return computed(F::kReshape, {computed(F::kTake, {x}, numbers)}, shape);
}

/// Axes of size 1 are expanded, others copied.
ExpressionPointer repeated_weight(Call& call) {
  ExpressionPointer x = needed_operand(call, "self");
  const std::vector<int64_t> counts = call.integers("repeats");
  const int64_t further = std::ssize(counts) - x->value.dim();
  if (further < 0)
    call.refuse(fmt::format("has {} for {}", counted(std::ssize(counts), "count"),
                            counted(x->value.dim(), "axis", "axes")));
  Shape shape(static_cast<size_t>(further), 1);
  shape.insert(shape.end(), x->value.sizes().begin(), x->value.sizes().end());
  x = computed(F::kReshape, {x}, shape);
  for (size_t axis = 0; axis < counts.size(); ++axis) {
    if (counts[axis] < 1 || counts[axis] > kMostCopiesOfWeight)
      call.refuse(fmt::format("makes {} copies; give a number from 1 to {}", counts[axis],
                              kMostCopiesOfWeight));
    if (shape[axis] == 1) {
      shape[axis] = counts[axis];
    } else if (counts[axis] > 1) {
      x = computed(F::kConcat, std::vector<ExpressionPointer>(static_cast<size_t>(counts[axis]), x),
                   {static_cast<int64_t>(axis)});
      shape[axis] *= counts[axis];
    }
  }
  return computed(F::kExpand, {x}, shape);
}

/// Each position of an axis several times.
ExpressionPointer interleaved_weight(Call& call) {
  const ExpressionPointer x = needed_operand(call, "self");
  if (!call.has("dim")) call.refuse("flattens the weight; give dim");
  const int axis = call.wrap_axis(call.integer("dim"), static_cast<int>(x->value.dim()));
  const int64_t count = call.integer("repeats");
  if (count < 1 || count > kMostCopiesOfWeight)
    call.refuse(
        fmt::format("makes {} copies; give a number from 1 to {}", count, kMostCopiesOfWeight));
  const int64_t size = x->value.size(axis);
  if (size > kMostPositionsOfWeight / count)
    call.refuse(fmt::format("makes {} copies of {} along an axis; Tessera takes up to {} in all",
                            count, counted(size, "position"), kMostPositionsOfWeight));
  std::vector<int64_t> numbers{axis};
  for (int64_t i = 0; i < size; ++i) numbers.insert(numbers.end(), count, i);
  return computed(F::kTake, {x}, numbers);
}

}  // namespace

std::optional<ExpressionPointer> gathered_weight(Call& call, const std::string& op) {
  if (op == "aten::index") return taken_weight(call);
  if (op == "aten::repeat") return repeated_weight(call);
  if (op == "aten::repeat_interleave") return interleaved_weight(call);
  return std::nullopt;
}

std::optional<Symbols> joined_weights(Call& call) {
  const std::vector<Symbol> items = call.items("tensors");
  std::vector<ExpressionPointer> operands;
  bool any_weight = false;
  for (const Symbol& item : items) {
    const bool is_known = std::holds_alternative<c10::IValue>(item);
    const auto operand = weight_operand(call, item);
    if (!operand) return std::nullopt;
    any_weight = any_weight || !is_known;
    operands.push_back(*operand);
  }
  if (!any_weight) return std::nullopt;
  const int axes = static_cast<int>(operands[0]->value.dim());
  return Symbols{computed_weight(
      computed(F::kConcat, operands, {int64_t{call.wrap_axis(call.integer("dim"), axes)}}))};
}

}  // namespace tessera
