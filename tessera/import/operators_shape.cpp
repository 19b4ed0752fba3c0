// What code does to the shape of a tensor. Sizes are numbers; views, permutations and expansions
// change how the code sees a value (view.h), and nothing else.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "tessera/import/operators.h"

namespace tessera {

std::vector<Operator> concat_operators();
std::vector<Operator> slice_operators();
std::vector<Operator> repeat_operators();

namespace {

Symbols import_size(Call& call) {
  const Symbol& symbol = call["self"];
  if (const auto* weight = std::get_if<WeightSymbol>(&symbol)) {
    if (call.has("dim"))
      return {
          c10::IValue(weight->view[call.wrap_axis(call.integer("dim"), std::ssize(weight->view))])};
    return {known(c10::IValue(std::vector<int64_t>(weight->view)))};
  }
  const TensorPointer x = call.tensor_or_expanded("self");
  const Shape shape = x->view.shape();
  if (call.has("dim")) return {c10::IValue(shape[call.axis("dim", *x)])};
  return {known(c10::IValue(std::vector<int64_t>(shape)))};
}

Symbols import_dim(Call& call) {
  if (const auto* weight = std::get_if<WeightSymbol>(&call["self"]))
    return {c10::IValue(static_cast<int64_t>(weight->view.size()))};
  return {c10::IValue(static_cast<int64_t>(call.tensor_or_expanded("self")->view.num_axes()))};
}

Symbols import_numel(Call& call) {
  int64_t product = 1;
  for (int64_t size : call.tensor_or_expanded("self")->view.shape()) product *= size;
  return {c10::IValue(product)};
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

/// Whether the samples of the batch are still told apart by one digit.
bool keeps_batch(const CodeView& view, int64_t batch) {
  for (const ViewDigit& digit : view.digits())
    if (digit.axis == 0 && digit.size != batch) return false;
  return true;
}

Symbols reshape_to(Call& call, const TensorPointer& x, Shape wanted) {
  const Shape had = x->view.shape();
  wanted = resolve(call, std::move(wanted), size_of(x->view.digits()));
  const std::optional<CodeView> view = x->view.reshaped(wanted);
  if (!view || !keeps_batch(*view, call.type(x->value).batch()))
    call.refuse(fmt::format(
        "views {} as {}, where {}; Tessera takes axes apart and together at their borders",
        to_string(had), to_string(wanted),
        view ? "the batch is taken apart" : "an axis begins in the middle of another one"));
  return {make_view(x, x->value, *view)};
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
  return reshape_to(call, call.tensor_or_expanded("self"), wanted);
}

Symbols import_flatten(Call& call) {
  const TensorPointer x = call.tensor_or_expanded("self");
  const Shape had = x->view.shape();
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

Symbols import_unflatten(Call& call) {
  const TensorPointer x = call.tensor_or_expanded("self");
  const int axis = call.axis("dim", *x);
  const Shape parts = resolve(call, call.integers("sizes"), size_of(x->view[axis]));
  Shape wanted = x->view.shape();
  wanted.erase(wanted.begin() + axis);
  wanted.insert(wanted.begin() + axis, parts.begin(), parts.end());
  return reshape_to(call, x, wanted);
}

Symbols import_squeeze(Call& call) {
  if (std::holds_alternative<WeightSymbol>(call["self"])) {
    WeightSymbol weight = std::get<WeightSymbol>(call["self"]);
    if (!call.has("dim")) call.refuse("needs an axis where it squeezes a weight; give dim");
    const int axis = call.wrap_axis(call.integer("dim"), std::ssize(weight.view));
    if (weight.view[axis] == 1) weight.view.erase(weight.view.begin() + axis);
    return {weight};
  }
  const TensorPointer x = call.tensor_or_expanded("self");
  std::vector<int64_t> axes(x->view.num_axes());
  std::iota(axes.begin(), axes.end(), 0);
  if (call.has("dim")) axes = call.integers("dim");
  std::vector<bool> dropped(x->view.num_axes(), false);
  for (int64_t dim : axes) {
    const int axis = call.wrap_axis(dim, x->view.num_axes());
    dropped[axis] = x->view[axis].empty();
  }
  return {make_view(x, x->value, x->view.without_axes(dropped))};
}

Symbols import_unsqueeze(Call& call) {
  const auto insert = [&](Shape shape) {
    const int axis = call.wrap_axis(call.integer("dim"), static_cast<int>(shape.size()) + 1);
    shape.insert(shape.begin() + axis, 1);
    return shape;
  };
  if (const auto* weight = std::get_if<WeightSymbol>(&call["self"]))
    return reshape_weight(call, *weight, insert(weight->view));
  const TensorPointer x = call.tensor_or_expanded("self");
  return {make_view(x, x->value, *x->view.reshaped(insert(x->view.shape())))};
}

Symbols permuted(Call& call, const std::vector<int>& axes) {
  const TensorPointer x = call.tensor_or_expanded("self");
  std::vector<int> seen(axes);
  std::sort(seen.begin(), seen.end());
  if (std::ssize(axes) != x->view.num_axes() ||
      std::adjacent_find(seen.begin(), seen.end()) != seen.end())
    call.refuse("is not a permutation of the tensor's axes");
  return {make_view(x, x->value, x->view.permuted(axes))};
}

Symbols import_permute(Call& call) {
  std::vector<int> axes;
  const int count = call.tensor_or_expanded("self")->view.num_axes();
  for (int64_t axis : call.integers("dims")) axes.push_back(call.wrap_axis(axis, count));
  return permuted(call, axes);
}

Symbols import_transpose(Call& call) {
  const TensorPointer x = call.tensor_or_expanded("self");
  std::vector<int> axes(x->view.num_axes());
  std::iota(axes.begin(), axes.end(), 0);
  const bool swaps = call.op() == "aten::swapaxes";
  std::swap(axes[call.axis(swaps ? "axis0" : "dim0", *x)],
            axes[call.axis(swaps ? "axis1" : "dim1", *x)]);
  return permuted(call, axes);
}

/// The tensor, as a view: PyTorch gives the tensor itself back, or a copy of it. Whichever it is,
/// code that then changes one in place and reads the other is refused.
Symbols import_same(Call& call) {
  if (!call.is_tensor("self")) return {call["self"]};
  const TensorPointer x = call.tensor_or_expanded("self");
  return {make_view(x, x->value, x->view)};
}

Symbols import_clone(Call& call) {
  const TensorPointer x = call.tensor_or_expanded("self");
  return {make_tensor(x->value, x->view)};
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
  const Shape had = x->view.shape();
  Shape wanted = call.op() == "aten::expand_as" ? call.tensor_or_expanded("other")->view.shape()
                                                : Shape(call.integers("size"));
  const size_t extra = wanted.size() - std::min(wanted.size(), had.size());
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i] == -1 && i >= extra) wanted[i] = had[i - extra];
  const std::optional<CodeView> view = x->view.stretched(wanted);
  if (!view) call.refuse(fmt::format("expands {} to {}", to_string(had), to_string(wanted)));
  return {make_view(x, x->value, *view)};
}

Symbols import_type(Call&) { return {UnknownSymbol{kTypeOfTensor}}; }
Symbols import_device(Call&) { return {c10::IValue(at::Device(at::kCPU))}; }
/// TorchScript counts layouts; torch.strided is the first.
Symbols import_layout(Call&) { return {c10::IValue(int64_t{0})}; }
Symbols import_no(Call&) { return {c10::IValue(false)}; }
Symbols import_yes(Call&) { return {c10::IValue(true)}; }

}  // namespace

std::vector<Operator> shape_operators() {
  const std::string nothing = "nothing: the tensor itself";
  std::vector<Operator> operators{
      {{"aten::flatten"},
       "remembered, until an operator needs the tensor in that form",
       import_flatten},
      {{"aten::view", "aten::reshape"},
       "as flatten; axes are taken apart and together at their borders, the batch stays",
       import_view},
      {{"aten::unflatten"}, "as view", import_unflatten},
      {{"aten::squeeze"}, "drops an axis of size 1", import_squeeze},
      {{"aten::unsqueeze"}, "adds an axis of size 1", import_unsqueeze},
      {{"aten::permute"}, "remembered; nothing moves for channels last", import_permute},
      {{"aten::transpose", "aten::swapaxes"}, "as permute", import_transpose},
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
       [](Call& call) { return Symbols{c10::IValue(call.tensor("t")->view.shape()[0])}; }},
      {{"aten::numel"}, "a known number", import_numel},
      {{"prim::dtype"}, "for conversions only: --dtype decides it", import_type},
      {{"prim::device"}, "a known value", import_device},
      {{"prim::layout"}, "a known value", import_layout},
      {{"prim::is_cuda", "prim::is_quantized", "prim::is_sparse", "prim::is_nested",
        "aten::is_complex"},
       "no",
       import_no},
      {{"aten::is_floating_point", "prim::requires_grad"}, "yes", import_yes}};
  std::vector<Operator> all = concat_operators();
  for (const auto& more : {operators, repeat_operators(), slice_operators()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace tessera
