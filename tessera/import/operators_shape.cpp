// What code does to the shape of a tensor. Sizes are numbers; axes of size 1 come and go; a
// permutation is remembered and undone by the next one; a flatten before a classifier is an
// operator; any other view mixes axes, which no cut of the image survives.

#include <fmt/format.h>

#include <algorithm>

#include "tessera/import/operators.h"
#include "tessera/import/repeat.h"
#include "tessera/ops/shape/concat.h"
#include "tessera/ops/shape/flatten.h"
#include "tessera/ops/shape/pixel_shuffle.h"
#include "tessera/ops/shape/unit_axes.h"

namespace tessera {

std::vector<Operator> slice_operators();
std::vector<Operator> repeat_operators();
std::vector<Operator> stack_operators();

namespace {

bool is_plain(const TensorSymbol& tensor) {
  return std::is_sorted(tensor.order.begin(), tensor.order.end()) && tensor.expanded.empty();
}

/// The same data under another shape.
Symbols viewed(const TensorPointer& base, ValueId value, int num_axes) {
  return {make_view(base, value, make_tensor(value, num_axes)->order)};
}

Symbols import_size(Call& call) {
  const Symbol& symbol = call["self"];
  if (const auto* weight = std::get_if<WeightSymbol>(&symbol)) {
    if (call.has("dim"))
      return {
          c10::IValue(weight->view[call.wrap_axis(call.integer("dim"), std::ssize(weight->view))])};
    return {known(c10::IValue(std::vector<int64_t>(weight->view)))};
  }
  const TensorPointer x = call.tensor_or_expanded("self");
  const Shape shape = call.shape(*x);
  if (call.has("dim")) return {c10::IValue(shape[call.axis("dim", *x)])};
  return {known(c10::IValue(std::vector<int64_t>(shape)))};
}

Symbols import_dim(Call& call) {
  if (const auto* weight = std::get_if<WeightSymbol>(&call["self"]))
    return {c10::IValue(static_cast<int64_t>(weight->view.size()))};
  return {c10::IValue(static_cast<int64_t>(call.tensor_or_expanded("self")->order.size()))};
}

Symbols import_numel(Call& call) {
  int64_t product = 1;
  for (int64_t size : call.shape(*call.tensor_or_expanded("self"))) product *= size;
  return {c10::IValue(product)};
}

Shape without_ones(const Shape& shape) {
  Shape rest;
  for (size_t i = 0; i < shape.size(); ++i)
    if (i == 0 || shape[i] != 1) rest.push_back(shape[i]);
  return rest;
}

/// -1 in the wanted shape is what is left over.
Shape resolve(Call& call, Shape wanted, int64_t volume) {
  int64_t product = 1;
  int64_t* open = nullptr;
  for (int64_t& size : wanted) {
    if (size == -1 && !open)
      open = &size;
    else if (size < 1 || product > volume / size)
      call.refuse(fmt::format("shape {} does not hold {} elements", to_string(wanted), volume));
    else
      product *= size;
  }
  if (open) *open = volume / product;
  if (product * (open ? *open : 1) != volume)
    call.refuse(fmt::format("shape {} does not hold {} elements", to_string(wanted), volume));
  return wanted;
}

/// Takes away and puts in axes of size 1, from the end to the front.
ValueId with_unit_axes(Call& call, ValueId value, const Shape& wanted) {
  Recording& graph = call.graph();
  const Shape had = call.type(value).shape();
  for (int axis = static_cast<int>(had.size()) - 1; axis >= 1; --axis)
    if (had[axis] == 1) value = squeeze(graph, value, call.name("squeeze"), axis);
  for (int axis = 1; axis < static_cast<int>(wanted.size()); ++axis)
    if (wanted[axis] == 1) value = unsqueeze(graph, value, call.name("unsqueeze"), axis);
  return value;
}

/// Whether only the channels are taken apart, into two axes.
bool is_grouped(const Shape& had, const Shape& wanted) {
  return had.size() >= 3 && wanted.size() == had.size() + 1 && wanted[0] == had[0] &&
         wanted[1] * wanted[2] == had[1] &&
         std::equal(had.begin() + 2, had.end(), wanted.begin() + 3);
}

std::shared_ptr<GroupedSymbol> grouped_image(const TensorPointer& image, int64_t groups,
                                             bool swapped) {
  return std::make_shared<GroupedSymbol>(
      GroupedSymbol{make_view(image, image->value, image->order), groups, swapped});
}

/// Back to an image, from channels in groups.
Symbols ungrouped(Call& call, const GroupedSymbol& grouped, Shape wanted) {
  const TensorPointer& x = grouped.image;
  if (!x->stale.empty()) call.refuse("reads a tensor too late: " + x->stale);
  const Shape had = call.shape(*x);
  if (resolve(call, std::move(wanted), Box::whole(had).volume()) != had)
    call.refuse("puts channels in groups together in another way than a channel shuffle does");
  if (!grouped.swapped) return {make_view(x, x->value, x->order)};
  return call.result(
      channel_shuffle(call.graph(), x->value, call.name("channel_shuffle"), grouped.groups));
}

Symbols reshape_to(Call& call, const TensorPointer& x, Shape wanted) {
  const Shape had = call.shape(*x);
  const int64_t volume = Box::whole(had).volume();
  wanted = resolve(call, std::move(wanted), volume);
  if (wanted == had) return {make_view(x, x->value, x->order)};
  if (!is_plain(*x)) call.refuse("views a permuted tensor; permute it back first");
  const int num_axes = static_cast<int>(wanted.size());
  if (num_axes == 2 && wanted[0] == had[0] && had.size() > 2)
    return viewed(x, flatten(call.graph(), x->value), 2);
  if (num_axes >= 2 && wanted[0] == had[0] && without_ones(wanted) == without_ones(had))
    return viewed(x, with_unit_axes(call, x->value, wanted), num_axes);
  if (is_grouped(had, wanted)) return {grouped_image(x, wanted[1], false)};
  call.refuse(fmt::format(
      "views {} as {}, which mixes axes; Tessera takes x.flatten(1) before a linear layer, and "
      "axes of size 1; for groups of channels use slices, nn.GroupNorm, nn.ChannelShuffle or "
      "nn.PixelShuffle",
      to_string(had), to_string(wanted)));
}

/// A weight is looked at in another shape; it is stored as before.
Symbols reshape_weight(Call& call, WeightSymbol weight, Shape wanted) {
  weight.view = resolve(call, std::move(wanted), weight.tensor.numel());
  return {weight};
}

Symbols import_view(Call& call) {
  const Shape wanted = call.integers(call.op() == "aten::view" ? "size" : "shape");
  if (const auto* weight = std::get_if<WeightSymbol>(&call["self"]))
    return reshape_weight(call, *weight, wanted);
  if (const auto* grouped = std::get_if<std::shared_ptr<GroupedSymbol>>(&call["self"]))
    return ungrouped(call, **grouped, wanted);
  return reshape_to(call, call.tensor("self"), wanted);
}

Symbols import_flatten(Call& call) {
  const TensorPointer x = call.tensor("self");
  const Shape had = call.shape(*x);
  const int axes = static_cast<int>(had.size());
  const int first = call.wrap_axis(call.integer("start_dim"), axes);
  const int last = call.wrap_axis(call.integer("end_dim"), axes);
  if (last < first) call.refuse("its first axis comes after its last");
  Shape wanted(had.begin(), had.begin() + first);
  int64_t product = 1;
  for (int axis = first; axis <= last; ++axis) product *= had[axis];
  wanted.push_back(product);
  wanted.insert(wanted.end(), had.begin() + last + 1, had.end());
  return reshape_to(call, x, wanted);
}

Symbols import_squeeze(Call& call) {
  if (!call.has("dim")) call.refuse("without an axis would drop the batch of one; give dim");
  if (std::holds_alternative<WeightSymbol>(call["self"])) {
    WeightSymbol weight = std::get<WeightSymbol>(call["self"]);
    const int axis = call.wrap_axis(call.integer("dim"), std::ssize(weight.view));
    if (weight.view[axis] == 1) weight.view.erase(weight.view.begin() + axis);
    return {weight};
  }
  const TensorPointer x = call.tensor("self");
  Shape wanted = call.shape(*x);
  std::vector<int> axes;
  for (int64_t axis : call.integers("dim"))
    axes.push_back(call.wrap_axis(axis, static_cast<int>(wanted.size())));
  std::sort(axes.rbegin(), axes.rend());
  for (int axis : axes) {
    if (wanted[axis] != 1) continue;
    if (axis == 0) call.refuse("drops the batch axis; keep it");
    wanted.erase(wanted.begin() + axis);
  }
  return reshape_to(call, x, wanted);
}

Symbols import_unsqueeze(Call& call) {
  const auto insert = [&](Shape shape) {
    const int axis = call.wrap_axis(call.integer("dim"), static_cast<int>(shape.size()) + 1);
    shape.insert(shape.begin() + axis, 1);
    return shape;
  };
  if (const auto* weight = std::get_if<WeightSymbol>(&call["self"]))
    return reshape_weight(call, *weight, insert(weight->view));
  const TensorPointer x = call.tensor("self");
  const Shape wanted = insert(call.shape(*x));
  if (wanted[0] == 1 && call.wrap_axis(call.integer("dim"), std::ssize(wanted)) == 0)
    call.refuse("puts an axis before the batch; the batch must stay first");
  return reshape_to(call, x, wanted);
}

Symbols permuted(Call& call, const std::vector<int>& axes) {
  const TensorPointer x = call.tensor("self");
  if (!x->expanded.empty()) call.refuse("permutes an expanded tensor; leave the expand() out");
  std::vector<int> order, seen(axes);
  std::sort(seen.begin(), seen.end());
  if (axes.size() != x->order.size() || std::adjacent_find(seen.begin(), seen.end()) != seen.end())
    call.refuse("is not a permutation of the tensor's axes");
  for (int axis : axes) order.push_back(x->order[axis]);
  if (order[0] != 0) call.refuse("moves the batch axis; the batch must stay first");
  return {make_view(x, x->value, std::move(order))};
}

Symbols import_permute(Call& call) {
  std::vector<int> axes;
  const int count = static_cast<int>(call.tensor("self")->order.size());
  for (int64_t axis : call.integers("dims")) axes.push_back(call.wrap_axis(axis, count));
  return permuted(call, axes);
}

Symbols import_transpose(Call& call) {
  if (const auto* grouped = std::get_if<std::shared_ptr<GroupedSymbol>>(&call["self"])) {
    const int64_t first = call.integer("dim0"), second = call.integer("dim1");
    if (std::min(first, second) != 1 || std::max(first, second) != 2)
      call.refuse("moves other axes than the two of the channels");
    GroupedSymbol swapped = **grouped;
    swapped.swapped = !swapped.swapped;
    return {std::make_shared<GroupedSymbol>(swapped)};
  }
  const TensorPointer x = call.tensor("self");
  std::vector<int> axes(x->order.size());
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int>(i);
  std::swap(axes[call.axis("dim0", *x)], axes[call.axis("dim1", *x)]);
  return permuted(call, axes);
}

/// The tensor, as a view: PyTorch gives the tensor itself back, or a copy of it. Whichever it is,
/// code that then changes one in place and reads the other is refused.
Symbols import_same(Call& call) {
  if (!call.is_tensor("self")) return {call["self"]};
  const TensorPointer x = call.tensor_or_expanded("self");
  const auto view = make_view(x, x->value, x->order);
  view->expanded = x->expanded;
  return {view};
}

Symbols import_clone(Call& call) {
  const TensorPointer x = call.tensor_or_expanded("self");
  auto copy = make_tensor(x->value, static_cast<int>(x->order.size()));
  copy->order = x->order;
  copy->expanded = x->expanded;
  return {copy};
}

Symbols import_to(Call& call) {
  if (std::holds_alternative<c10::IValue>(call["self"])) return {call["self"]};
  if (call.has("dtype") && std::holds_alternative<c10::IValue>(call["dtype"])) {
    const auto type = static_cast<at::ScalarType>(call.integer("dtype"));
    if (type != at::kFloat && type != at::kDouble)
      call.refuse(
          fmt::format("converts to {}; the whole network runs in --dtype float32 or "
                      "float64",
                      c10::toString(type)));
  }
  return {call["self"]};
}

Symbols import_expand(Call& call) {
  const TensorPointer x = call.tensor_or_expanded("self");
  const Shape had = call.shape(*x);
  Shape wanted = call.op() == "aten::expand_as" ? call.shape(*call.tensor_or_expanded("other"))
                                                : Shape(call.integers("size"));
  if (wanted.size() < had.size()) call.refuse("has fewer axes than the tensor");
  const size_t extra = wanted.size() - had.size();
  for (size_t i = 0; i < wanted.size(); ++i) {
    const int64_t own = i < extra ? 1 : had[i - extra];
    if (wanted[i] == -1) wanted[i] = own;
    if (own != wanted[i] && own != 1)
      call.refuse(fmt::format("expands {} to {}", to_string(had), to_string(wanted)));
  }
  const auto view = make_view(x, x->value, x->order);
  if (extra > 0) call.refuse("adds axes; use unsqueeze, arithmetic broadcasts by itself");
  if (wanted != had) view->expanded = wanted;
  return {view};
}

Symbols import_cat(Call& call) {
  TensorPointer first;
  const std::vector<Symbol> items = call.items("tensors");
  for (const Symbol& item : items) {
    const auto* tensor = std::get_if<TensorPointer>(&item);
    if (tensor && !first) first = *tensor;
  }
  if (!first) call.refuse("joins no tensor of the network");
  const int axis = call.axis("dim", *first);
  if (axis == 0) call.refuse("joins along the batch; join channels or space");
  std::vector<ValueId> values;
  for (const Symbol& item : items) {
    if (const auto* made = std::get_if<std::shared_ptr<MadeSymbol>>(&item)) {
      values.push_back(filled_beside(call, **made, *first, axis));
      continue;
    }
    const auto* tensor = std::get_if<TensorPointer>(&item);
    if (!tensor) call.refuse("joins " + describe(item) + "; join tensors of the network");
    if (!(*tensor)->stale.empty()) call.refuse("reads a tensor too late: " + (*tensor)->stale);
    const TensorPointer whole =
        (*tensor)->expanded.empty() ? *tensor : copy_expanded(call, *tensor);
    if (!is_plain(*whole) || first->order.size() != whole->order.size())
      call.refuse("joins permuted tensors, or tensors of different numbers of axes");
    values.push_back(whole->value);
  }
  if (values.size() == 1) return {make_tensor(values[0], static_cast<int>(first->order.size()))};
  return call.result(concat(call.graph(), values, call.name("cat"), axis));
}

Symbols import_type(Call&) {
  return {UnknownSymbol{"the type of a tensor, which --dtype decides"}};
}
Symbols import_device(Call&) { return {c10::IValue(at::Device(at::kCPU))}; }
/// TorchScript counts layouts; torch.strided is the first.
Symbols import_layout(Call&) { return {c10::IValue(int64_t{0})}; }
Symbols import_no(Call&) { return {c10::IValue(false)}; }
Symbols import_yes(Call&) { return {c10::IValue(true)}; }

}  // namespace

std::vector<Operator> shape_operators() {
  const std::string nothing = "nothing: the tensor itself";
  std::vector<Operator> operators{
      {{"aten::cat", "aten::concat", "aten::concatenate"},
       "concatenation along channels or space; also with zeros and other numbers",
       import_cat},
      {{"aten::flatten"}, "flatten before a linear layer; axes of size 1", import_flatten},
      {{"aten::view", "aten::reshape"},
       "as flatten, squeeze and unsqueeze; others mix axes",
       import_view},
      {{"aten::squeeze"}, "drops an axis of size 1", import_squeeze},
      {{"aten::unsqueeze"}, "adds an axis of size 1", import_unsqueeze},
      {{"aten::permute"},
       "remembered; channels last for layer norm and linear layers",
       import_permute},
      {{"aten::transpose"}, "as permute", import_transpose},
      {{"aten::expand", "aten::expand_as"},
       "broadcast in the arithmetic after it; a copy where another operator reads it",
       import_expand},
      {{"aten::contiguous", "aten::cpu", "aten::float", "aten::double", "aten::alias"},
       nothing,
       import_same},
      {{"aten::to", "aten::type_as"}, "nothing; refused for half and integer types", import_to},
      {{"aten::clone"}, "a copy, which costs nothing here", import_clone},
      {{"aten::size"}, "known numbers", import_size},
      {{"aten::dim", "aten::ndimension", "prim::ndim"}, "a known number", import_dim},
      {{"aten::len"},
       "a known number",
       [](Call& call) { return Symbols{c10::IValue(call.shape(*call.tensor("t"))[0])}; }},
      {{"aten::numel"}, "a known number", import_numel},
      {{"prim::dtype"}, "for conversions only: --dtype decides it", import_type},
      {{"prim::device"}, "a known value", import_device},
      {{"prim::layout"}, "a known value", import_layout},
      {{"prim::is_cuda", "prim::is_quantized", "prim::is_sparse", "aten::is_complex"},
       "no",
       import_no},
      {{"aten::is_floating_point"}, "yes", import_yes}};
  for (const auto& more : {stack_operators(), repeat_operators(), slice_operators()})
    operators.insert(operators.end(), more.begin(), more.end());
  return operators;
}

}  // namespace tessera
