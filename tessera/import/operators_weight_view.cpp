// Views of weights, and of what is computed from them: other shapes and orders, parts.

#include <algorithm>
#include <numeric>
#include <set>

#include "tessera/import/operators_weight.h"
#include "tessera/import/weight_memory.h"

namespace tessera {
namespace {

using F = WeightFunction;
using WeightSteps = std::vector<WeightStep>;

/// In PyTorch these give a copy where the strides ask for one.
bool may_copy(const std::string& op) {
  static const std::set<std::string> names{"aten::reshape",    "aten::reshape_as", "aten::flatten",
                                           "aten::contiguous", "aten::to",         "aten::type_as",
                                           "aten::float",      "aten::double"};
  return names.contains(op);
}

/// Its shape, however the operator names it.
std::optional<Shape> shape_of_view(Call& call, const std::string& op, const at::Tensor& value) {
  const auto other = [&] { return (*weight_operand(call, call["other"]))->value.sizes(); };
  if (op == "aten::view" || op == "aten::reshape")
    return value.reshape(call.integers(op == "aten::view" ? "size" : "shape")).sizes().vec();
  if (op == "aten::view_as" || op == "aten::reshape_as")
    return value.reshape(other()).sizes().vec();
  if (op == "aten::flatten")
    return value.flatten(call.integer("start_dim"), call.integer("end_dim")).sizes().vec();
  if (op == "aten::unsqueeze") return value.unsqueeze(call.integer("dim")).sizes().vec();
  if (op == "aten::squeeze")
    return (call.has("dim") ? value.squeeze(call.integer("dim")) : value.squeeze()).sizes().vec();
  return std::nullopt;
}

std::optional<std::vector<int64_t>> order_of_view(Call& call, const std::string& op, int count) {
  if (op == "aten::permute") return call.integers("dims");
  std::vector<int64_t> axes(static_cast<size_t>(count));
  std::iota(axes.begin(), axes.end(), 0);
  if (op == "aten::t" || op == "aten::numpy_T" || op == "aten::matrix_H") {
    std::reverse(axes.begin(), axes.end());
    return axes;
  }
  if (op != "aten::transpose" && op != "aten::swapaxes") return std::nullopt;
  const bool swaps = op == "aten::swapaxes";
  std::swap(axes[call.wrap_axis(call.integer(swaps ? "axis0" : "dim0"), count)],
            axes[call.wrap_axis(call.integer(swaps ? "axis1" : "dim1"), count)]);
  return axes;
}

WeightStep slice_step(int64_t axis, int64_t begin, int64_t end, int64_t step = 1) {
  return {F::kSlice, {}, {axis, begin, end, step}};
}

/// One position of an axis, which goes.
WeightSteps select_steps(const at::Tensor& value, int64_t axis, int64_t index) {
  Shape shape = value.sizes().vec();
  shape.erase(shape.begin() + axis);
  return {slice_step(axis, index, index + 1), {F::kReshape, {}, shape}};
}

std::optional<WeightSteps> steps_of_view(Call& call, const std::string& op,
                                         const at::Tensor& value) {
  const int count = static_cast<int>(value.dim());
  if (const auto shape = shape_of_view(call, op, value))
    return WeightSteps{{F::kReshape, {}, *shape}};
  if (const auto order = order_of_view(call, op, count))
    return WeightSteps{{F::kPermute, {}, *order}};
  if (op == "aten::expand")
    return WeightSteps{{F::kExpand, {}, value.expand(call.integers("size")).sizes().vec()}};
  if (op == "aten::expand_as")
    return WeightSteps{
        {F::kExpand, {}, (*weight_operand(call, call["other"]))->value.sizes().vec()}};
  if (op == "aten::detach") return WeightSteps{{F::kDetach, {}}};
  if (op == "aten::alias" || op == "aten::contiguous" || op == "aten::to" ||
      op == "aten::type_as" || op == "aten::float" || op == "aten::double")
    return WeightSteps{};
  if (op == "aten::slice") {
    const int axis = call.wrap_axis(call.integer("dim"), count);
    const int64_t size = value.size(axis);
    const auto position = [&](const std::string& name, int64_t otherwise) {
      const int64_t at = call.has(name) ? call.integer(name) : otherwise;
      return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size);
    };
    return WeightSteps{
        slice_step(axis, position("start", 0), position("end", size), call.integer("step"))};
  }
  if (op == "aten::select") {
    const int axis = call.wrap_axis(call.integer("dim"), count);
    const int64_t index = call.integer("index");
    return select_steps(value, axis, index < 0 ? index + value.size(axis) : index);
  }
  return std::nullopt;
}

/// unbind(), chunk() and split(): several views.
std::vector<WeightSteps> steps_of_parts(Call& call, const std::string& op,
                                        const at::Tensor& value) {
  std::vector<WeightSteps> all;
  const bool splits = op == "aten::split" || op == "aten::split_with_sizes";
  if (op != "aten::unbind" && op != "aten::chunk" && !splits) return all;
  const int axis = call.wrap_axis(call.integer("dim"), static_cast<int>(value.dim()));
  if (op == "aten::unbind") {
    for (int64_t i = 0; i < value.size(axis); ++i) all.push_back(select_steps(value, axis, i));
    return all;
  }
  std::vector<at::Tensor> parts;
  if (op == "aten::chunk") {
    parts = value.chunk(call.integer("chunks"), axis);
  } else {
    const std::string name = call.has("split_sizes") ? "split_sizes" : "split_size";
    parts = std::holds_alternative<c10::IValue>(call[name])
                ? value.split(call.integer(name), axis)
                : value.split_with_sizes(call.integers(name), axis);
  }
  int64_t begin = 0;
  for (const at::Tensor& part : parts) {
    all.push_back({slice_step(axis, begin, begin + part.size(axis))});
    begin += part.size(axis);
  }
  return all;
}

/// Operators that take a weight in another shape as it is (WeightSymbol::view), without computing
/// one.
bool only_looks(const std::string& op) {
  static const std::set<std::string> names{
      "aten::view", "aten::reshape", "aten::unsqueeze", "aten::squeeze", "aten::contiguous",
      "aten::to",   "aten::type_as", "aten::float",     "aten::double",  "aten::alias"};
  return names.contains(op);
}

}  // namespace

std::optional<Symbols> view_of_weight(Call& call, const std::string& op) {
  const auto* weight = call.find<WeightSymbol>("self");
  const ComputedPointer* found = call.find<ComputedPointer>("self");
  if ((!weight && !found) || (weight && only_looks(op)) || call.in_place()) return std::nullopt;
  const ComputedPointer self = found ? *found : computed_weight(expression_of(*weight));
  if (weight) self->of_module = true;
  const at::Tensor& value = self->expression->value;
  if (const auto steps = steps_of_view(call, op, value)) {
    const ComputedPointer view = weight_view(self, *steps);
    view->may_be_copy = view->may_be_copy || may_copy(op);
    const bool is_whole = op == "aten::slice" && view->expression->value.sizes() == value.sizes() &&
                          call.integer("step") == 1;
    if (weight && is_whole) return Symbols{*weight};  // gamma[:, None, None]
    return Symbols{view};
  }
  const std::vector<WeightSteps> parts = steps_of_parts(call, op, value);
  if (parts.empty()) return std::nullopt;
  auto list = std::make_shared<ListSymbol>();
  for (const WeightSteps& steps : parts) list->items.push_back(weight_view(self, steps));
  return Symbols{list};
}

}  // namespace tessera
