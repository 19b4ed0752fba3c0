#include <fmt/format.h>

#include <algorithm>

#include "tessera/import/operators.h"
#include "tessera/ops/shape/slice.h"
#include "tessera/ops/shape/unit_axes.h"

namespace tessera {
namespace {

/// The part [begin, end) of the tensor along an axis of the value; all of it is the value itself.
ValueId part(Call& call, ValueId x, int axis, int64_t begin, int64_t end, int64_t step = 1) {
  const int64_t size = call.type(x).axes[axis].size;
  if (begin == 0 && end == size && step == 1) return x;
  if (axis == 0) call.refuse("takes a part of the batch; take parts of channels or space");
  if (begin >= end) call.refuse(fmt::format("takes nothing: [{}, {}) of {}", begin, end, size));
  return slice(call.graph(), x, call.name("slice"), {axis, begin, end, step});
}

Symbols view_of(Call& call, const TensorPointer& base, ValueId value) {
  return {make_view(base, value, make_tensor(value, call.type(value).num_axes())->order)};
}

int64_t clamped(int64_t at, int64_t size) {
  return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size);
}

/// weight[:, None, None] slices all of the first axis.
Symbols slice_of_weight(Call& call, const WeightSymbol& weight) {
  const int axis = call.wrap_axis(call.integer("dim"), static_cast<int>(weight.view.size()));
  const int64_t size = weight.view[axis];
  const bool all = (!call.has("start") || clamped(call.integer("start"), size) == 0) &&
                   (!call.has("end") || clamped(call.integer("end"), size) == size) &&
                   call.integer("step") == 1;
  if (!all) call.refuse("takes a part of the weight " + weight.name + "; store the parts apart");
  return {weight};
}

Symbols import_slice(Call& call) {
  if (const auto* weight = std::get_if<WeightSymbol>(&call["self"]))
    return slice_of_weight(call, *weight);
  const TensorPointer x = call.tensor("self");
  const int axis = call.axis("dim", *x);
  const int64_t size = call.shape(*x)[axis];
  const int64_t step = std::min(call.integer("step"), std::max<int64_t>(size, 1));
  const int64_t begin = call.has("start") ? clamped(call.integer("start"), size) : 0;
  const int64_t end = call.has("end") ? clamped(call.integer("end"), size) : size;
  if (begin == 0 && end == size && step == 1) return {make_view(x, x->value, x->order)};
  const ValueId image = call.image("self");
  return view_of(call, x, part(call, image, axis, begin, end, step));
}

Symbols import_narrow(Call& call) {
  const TensorPointer x = call.tensor("self");
  const int axis = call.axis("dim", *x);
  const int64_t size = call.shape(*x)[axis];
  const int64_t begin =
      call.integer("start") < 0 ? call.integer("start") + size : call.integer("start");
  const int64_t end = begin + std::clamp<int64_t>(call.integer("length"), 0, size + 1);
  if (begin < 0 || begin > size || end > size)
    call.refuse(fmt::format("takes [{}, {}) of an axis of {}", begin, end, size));
  return view_of(call, x, part(call, call.image("self"), axis, begin, end));
}

Symbols import_select(Call& call) {
  const TensorPointer x = call.tensor("self");
  const int axis = call.axis("dim", *x);
  if (axis == 0) call.refuse("takes one sample of the batch; the batch must stay");
  const int64_t size = call.shape(*x)[axis];
  const int64_t index =
      call.integer("index") < 0 ? call.integer("index") + size : call.integer("index");
  if (index < 0 || index >= size)
    call.refuse(fmt::format("takes index {} of an axis of {}", call.integer("index"), size));
  const ValueId one = part(call, call.image("self"), axis, index, index + 1);
  return view_of(call, x, squeeze(call.graph(), one, call.name("select"), axis));
}

Symbols parts(Call& call, const std::vector<int64_t>& sizes) {
  const TensorPointer x = call.tensor("self");
  const ValueId image = call.image("self");
  const int axis = call.axis("dim", *x);
  auto list = std::make_shared<ListSymbol>();
  int64_t begin = 0;
  for (int64_t size : sizes) {
    if (size < 1) call.refuse(fmt::format("has a part of size {}", size));
    list->items.push_back(view_of(call, x, part(call, image, axis, begin, begin + size))[0]);
    begin += size;
  }
  if (begin != call.shape(*x)[axis])
    call.refuse(
        fmt::format("has parts of {} in all, the axis has {}", begin, call.shape(*x)[axis]));
  return {list};
}

std::vector<int64_t> equal_parts(int64_t whole, int64_t size) {
  std::vector<int64_t> sizes;
  for (int64_t begin = 0; begin < whole; begin += size)
    sizes.push_back(std::min(size, whole - begin));
  return sizes;
}

Symbols import_chunk(Call& call) {
  const TensorPointer x = call.tensor("self");
  const int64_t whole = call.shape(*x)[call.axis("dim", *x)];
  const int64_t chunks = std::min(call.integer("chunks"), whole);
  if (chunks < 1) call.refuse(fmt::format("makes {} chunks", chunks));
  return parts(call, equal_parts(whole, (whole + chunks - 1) / chunks));
}

Symbols import_split(Call& call) {
  const std::string name = call.has("split_sizes") ? "split_sizes" : "split_size";
  if (!std::holds_alternative<c10::IValue>(call[name])) return parts(call, call.integers(name));
  const TensorPointer x = call.tensor("self");
  const int64_t whole = call.shape(*x)[call.axis("dim", *x)], size = call.integer(name);
  if (size < 1) call.refuse(fmt::format("has a split size of {}", size));
  return parts(call, equal_parts(whole, size));
}

}  // namespace

std::vector<Operator> slice_operators() {
  return {{{"aten::slice"}, "slices and crops along channels and space, with steps", import_slice},
          {{"aten::narrow"}, "as slice", import_narrow},
          {{"aten::select"}, "one channel, row or column", import_select},
          {{"aten::chunk"}, "slices", import_chunk},
          {{"aten::split", "aten::split_with_sizes"}, "slices", import_split}};
}

}  // namespace tessera
