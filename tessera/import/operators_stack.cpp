// torch.stack: its tensors stay apart. What is summed along the new axis is added up, what is
// computed element by element is computed for each of them, and only a view that makes channels of
// the new axis puts them together.

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "tessera/import/operators.h"

namespace tessera {
namespace {

using StackPointer = std::shared_ptr<StackSymbol>;

Symbols stack_of(std::vector<TensorPointer> items, int axis) {
  return {std::make_shared<StackSymbol>(StackSymbol{std::move(items), axis})};
}

const TensorPointer& checked(Call& call, const TensorPointer& item) {
  if (!item->stale.empty()) call.refuse("reads a tensor too late: " + item->stale);
  return item;
}

Shape stacked_shape(Call& call, const StackSymbol& stack) {
  Shape shape = call.shape(*stack.items[0]);
  shape.insert(shape.begin() + stack.axis, std::ssize(stack.items));
  return shape;
}

/// Images without channels become channels; other stacks stay apart.
Symbols import_stack(Call& call) {
  std::vector<TensorPointer> items;
  for (const Symbol& symbol : call.items("tensors")) {
    const auto* tensor = std::get_if<TensorPointer>(&symbol);
    if (!tensor) call.refuse("stacks " + describe(symbol) + "; stack tensors of the network");
    if (!(*tensor)->expanded.empty())
      call.refuse("stacks expanded tensors; leave the expand() out");
    if (!items.empty() &&
        (call.shape(**tensor) != call.shape(*items[0]) || (*tensor)->order != items[0]->order))
      call.refuse(fmt::format("stacks {} and {}; shapes must be equal",
                              to_string(call.shape(*items[0])), to_string(call.shape(**tensor))));
    items.push_back(make_tensor(checked(call, *tensor)->value, 0));  // a copy, as torch.stack gives
    items.back()->order = (*tensor)->order;
  }
  if (items.empty()) call.refuse("stacks nothing");
  const int num_axes = static_cast<int>(items[0]->order.size());
  const int axis = call.wrap_axis(call.integer("dim"), num_axes + 1);
  const ValueType& type = call.type(items[0]->value);
  const bool no_channels = type.num_axes() > 1 && type.axes[1].kind != AxisKind::kChannel;
  if (axis != 1 || !no_channels) return stack_of(std::move(items), axis);
  std::vector<ValueId> channels;
  for (const TensorPointer& item : items)
    channels.push_back(unsqueeze(call.graph(), item->value, call.name("unsqueeze"), 1));
  return {make_tensor(concat(call.graph(), channels, call.name("stack"), 1), num_axes + 1)};
}

/// The items one after the other, joined by an operator of two.
ValueId folded(Call& call, const std::vector<TensorPointer>& items, Arithmetic how) {
  ValueId value = checked(call, items[0])->value;
  for (size_t i = 1; i < items.size(); ++i)
    value = arithmetic(call.graph(), value, checked(call, items[i])->value,
                       call.name(to_string(how)), how);
  return value;
}

TensorPointer like(const TensorSymbol& other, ValueId value) {
  TensorPointer tensor = make_tensor(value, 0);
  tensor->order = other.order;
  return tensor;
}

/// Along the new axis only.
std::optional<Symbols> reduced_stack(Call& call, const StackSymbol& stack) {
  const std::string& op = call.op();
  const bool is_max = op == "aten::max" || op == "aten::amax";
  if (!is_max && op != "aten::sum" && op != "aten::mean") return std::nullopt;
  const int num_axes = static_cast<int>(stack.items[0]->order.size()) + 1;
  if (!call.has("dim") || call.integers("dim").size() != 1 ||
      call.wrap_axis(call.integers("dim")[0], num_axes) != stack.axis)
    call.refuse("reduces a stack of tensors along other axes than the new one; do that before");
  if (op == "aten::amax" && stack.items.size() > 2)
    call.refuse("shares a gradient between more than two equal tensors; use max(dim)");
  const Arithmetic how = op == "aten::max"    ? Arithmetic::kFirstMaximum
                         : op == "aten::amax" ? Arithmetic::kMaximum
                                              : Arithmetic::kAdd;
  ValueId value = folded(call, stack.items, how);
  if (op == "aten::mean")
    value =
        pointwise(call.graph(), value, call.name("mean"),
                  {PointwiseFunction::kAffine, 1.0 / static_cast<double>(stack.items.size()), 0});
  const TensorPointer result = like(*stack.items[0], value);
  Symbols results = call.flag("keepdim") ? stack_of({result}, stack.axis) : Symbols{result};
  if (op == "aten::max")
    results.push_back(UnknownSymbol{"the indices of a maximum, which Tessera does not give"});
  return results;
}

/// exp(x - max) / sum, as PyTorch computes it. The maximum cancels out, and so does its gradient.
std::optional<Symbols> softmax_of_stack(Call& call, const StackSymbol& stack) {
  if (call.op() != "aten::softmax") return std::nullopt;
  const int num_axes = static_cast<int>(stack.items[0]->order.size()) + 1;
  if (call.wrap_axis(call.integer("dim"), num_axes) != stack.axis)
    call.refuse("is over another axis than the new one of the stack; take it before stacking");
  const ValueId largest = folded(call, stack.items, Arithmetic::kMaximum);
  std::vector<TensorPointer> terms;
  for (const TensorPointer& item : stack.items) {
    const ValueId below =
        arithmetic(call.graph(), item->value, largest, call.name("softmax"), Arithmetic::kSubtract);
    terms.push_back(like(*item, pointwise(call.graph(), below, call.name("softmax"),
                                          {PointwiseFunction::kExp, 0, 0})));
  }
  const ValueId sum = folded(call, terms, Arithmetic::kAdd);
  for (const TensorPointer& term : terms)
    term->value =
        arithmetic(call.graph(), term->value, sum, call.name("softmax"), Arithmetic::kDivide);
  return stack_of(std::move(terms), stack.axis);
}

/// One of them, all of them, or all as they are.
std::optional<Symbols> taken_apart(Call& call, const StackPointer& stack) {
  const std::string& op = call.op();
  const int num_axes = static_cast<int>(stack->items[0]->order.size()) + 1;
  const auto size = static_cast<int64_t>(stack->items.size());
  if (op == "aten::select" || op == "aten::unbind" || op == "aten::slice") {
    const int axis = call.wrap_axis(call.integer("dim"), num_axes);
    if (op == "aten::slice") {
      const int64_t whole = stacked_shape(call, *stack)[axis];
      const bool all = (!call.has("start") || call.integer("start") == 0) &&
                       (!call.has("end") || call.integer("end") >= whole) &&
                       call.integer("step") == 1;
      if (all) return Symbols{stack};
      call.refuse("takes a part of a stack of tensors; stack fewer of them");
    }
    if (axis != stack->axis)
      call.refuse("takes a stack of tensors apart along another axis than the new one");
    if (op == "aten::unbind") {
      auto list = std::make_shared<ListSymbol>();
      for (const TensorPointer& item : stack->items) list->items.push_back(checked(call, item));
      return Symbols{list};
    }
    const int64_t index = call.integer("index");
    if (index < -size || index >= size)
      call.refuse(fmt::format("takes index {} of a stack of {}", index, size));
    return Symbols{checked(call, stack->items[index < 0 ? index + size : index])};
  }
  if (op == "aten::contiguous" || op == "aten::clone") return Symbols{stack};
  if (op == "aten::dim") return Symbols{c10::IValue(int64_t{num_axes})};
  if (op != "aten::size") return std::nullopt;
  const Shape shape = stacked_shape(call, *stack);
  if (!call.has("dim")) return Symbols{known(c10::IValue(std::vector<int64_t>(shape)))};
  return Symbols{c10::IValue(shape[call.wrap_axis(call.integer("dim"), num_axes)])};
}

/// view(n, count * c, ...): the stack's axis beside that of the channels becomes part of them.
std::optional<Symbols> joined_channels(Call& call, const StackSymbol& stack) {
  const std::string& op = call.op();
  const Shape shape = stacked_shape(call, stack);
  Shape wanted;
  if (op == "aten::view" || op == "aten::reshape") {
    wanted = call.integers(op == "aten::view" ? "size" : "shape");
  } else if (op == "aten::flatten") {
    const bool channels = call.wrap_axis(call.integer("start_dim"), std::ssize(shape)) == 1 &&
                          call.wrap_axis(call.integer("end_dim"), std::ssize(shape)) == 2;
    if (!channels) call.refuse("flattens a stack of tensors; flatten them before");
  } else {
    return std::nullopt;
  }
  const bool plain = std::is_sorted(stack.items[0]->order.begin(), stack.items[0]->order.end());
  Shape joined(shape);
  if (joined.size() >= 3) {
    joined[1] *= joined[2];
    joined.erase(joined.begin() + 2);
  }
  if (wanted.empty()) wanted = joined;
  bool same = wanted.size() == joined.size() && std::count(wanted.begin(), wanted.end(), -1) <= 1;
  for (size_t i = 0; same && i < wanted.size(); ++i)
    same = wanted[i] == -1 || wanted[i] == joined[i];
  if (!same || !plain || (stack.axis != 1 && stack.axis != 2))
    call.refuse(fmt::format("views a stack of tensors {} as {}; Tessera makes channels of it: {}",
                            to_string(shape), to_string(wanted), to_string(joined)));
  std::vector<ValueId> values;
  for (const TensorPointer& item : stack.items) values.push_back(checked(call, item)->value);
  ValueId value = concat(call.graph(), values, call.name("stack"), 1);
  if (stack.axis == 2)
    value = channel_shuffle(call.graph(), value, call.name("stack"), std::ssize(values));
  return Symbols{make_tensor(value, static_cast<int>(joined.size()))};
}

/// Whether the operator computes each element by itself.
bool is_elementwise(const std::string& op) {
  for (const auto& operators : {pointwise_operators(), arithmetic_operators()})
    for (const Operator& known : operators)
      if (std::count(known.names.begin(), known.names.end(), op) > 0)
        return op != "aten::softmax" && op != "aten::log_softmax" && op != "aten::prelu";
  return op == "aten::dropout";
}

/// The operator on each of the tensors, with the one beside it in another stack.
Symbols on_each_item(Call& call, const std::string& first) {
  const StackPointer* self = call.find<StackPointer>(first);
  const StackPointer* other = call.find<StackPointer>("other");
  const StackSymbol& a = self ? **self : **other;
  const StackSymbol& b = other ? **other : **self;
  if (a.axis != b.axis || a.items[0]->order.size() != b.items[0]->order.size())
    call.refuse("joins stacks of tensors along different axes");
  if ((!self && call.find<TensorPointer>(first)) || call.find<TensorPointer>("other"))
    call.refuse("joins a stack of tensors with one tensor; do that before stacking");
  const size_t count = std::max(a.items.size(), b.items.size());
  if (std::min(a.items.size(), b.items.size()) != count && a.items.size() != 1 &&
      b.items.size() != 1)
    call.refuse(fmt::format("joins stacks of {} and {} tensors", a.items.size(), b.items.size()));
  const Operator* found = find_operator(call.op());
  std::vector<TensorPointer> results;
  for (size_t i = 0; i < count; ++i) {
    const auto at = [&](const StackSymbol& stack) {
      return checked(call, stack.items[stack.items.size() == 1 ? 0 : i]);
    };
    const Call left = self ? call.with(first, at(a)) : call;
    Call one = other ? left.with("other", at(b)) : left;
    results.push_back(std::get<TensorPointer>(found->import(one)[0]));
  }
  return stack_of(std::move(results), a.axis);
}

}  // namespace

std::optional<Symbols> run_on_stack(Call& call) {
  const std::string first = call.find<StackPointer>("input") ? "input" : "self";
  const StackPointer* self = call.find<StackPointer>(first);
  if (self)
    for (const auto& run : {reduced_stack, softmax_of_stack, joined_channels})
      if (auto results = run(call, **self)) return results;
  if (self)
    if (auto results = taken_apart(call, *self)) return results;
  if (!self && !call.find<StackPointer>("other")) return std::nullopt;
  if (is_elementwise(call.op())) return on_each_item(call, first);
  return std::nullopt;
}

std::vector<Operator> stack_operators() {
  return {
      {{"aten::stack"},
       "for sums, means, maxima and a softmax along the new axis, arithmetic, select and unbind; "
       "images without channels, or a view of channels, are concatenated",
       import_stack},
      {{"aten::unbind"}, "of stacks, along their new axis", [](Call& call) -> Symbols {
         call.refuse("takes apart " + describe(call["self"]) +
                     "; it takes stacks of tensors apart, use slices for others");
       }}};
}

}  // namespace tessera
