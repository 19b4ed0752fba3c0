#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "tessera/import/arrange.h"
#include "tessera/import/operators.h"
#include "tessera/import/slices.h"
#include "tessera/ops/shape/concat.h"
#include "tessera/ops/shape/slice.h"

namespace tessera {
namespace {

/// The digit that is the whole axis of the code, and the highest one of the value's axis: its
/// positions are slices of the value.
bool is_sliceable(Call& call, const TensorSymbol& x, int axis) {
  if (x.view[axis].size() != 1) return false;
  const ViewDigit& digit = x.view[axis][0];
  return digit.axis > 0 && digit.weight * digit.size == call.type(x.value).axes[digit.axis].size;
}

/// Brings the digits of the axis to the top of the channels, so that they can be sliced.
void make_sliceable(Call& call, TensorSymbol& x, int axis) {
  const ViewDigits wanted = x.view[axis], all = x.view.digits();
  const bool in_channels = std::all_of(wanted.begin(), wanted.end(),
                                       [](const ViewDigit& digit) { return digit.axis == 1; });
  if (!in_channels) {  // a part of the pixels: the tensor as the code sees it
    call.image(x);
    return;
  }
  std::vector<ViewDigits> axes = digits_by_axis(all, call.type(x.value).num_axes());
  axes[1] = digits_without(axes[1], wanted);
  axes[1].insert(axes[1].begin(), wanted.begin(), wanted.end());
  arrange(call.graph(), x, axes, call.name("rearrange"));
}

}  // namespace

TensorPointer part(Call& call, const TensorPointer& x, int axis, const Positions& at) {
  const int64_t size = size_of(x->view[axis]);
  if (at.begin == 0 && at.end == size && at.step == 1) return make_view(x, x->value, x->view);
  if (at.begin >= at.end)
    call.refuse(fmt::format("takes nothing: [{}, {}) of {}", at.begin, at.end, size));
  const ViewDigits& digits = x->view[axis];
  if (std::any_of(digits.begin(), digits.end(), [](const ViewDigit& d) { return d.axis == 0; }))
    call.refuse("takes a part of the batch; take parts of channels or space");
  if (!is_sliceable(call, *x, axis)) make_sliceable(call, *x, axis);
  const ViewDigit digit = x->view[axis].at(0);
  const int64_t count = (at.end - at.begin + at.step - 1) / at.step;
  const bool one_digit = digit.weight == 1;
  if (!one_digit && at.step != 1) call.refuse("takes every n-th of a part of the channels");
  const ValueId value =
      slice(call.graph(), x->value, call.name("slice"),
            {digit.axis, at.begin * digit.weight, at.end * digit.weight, at.step});
  return make_view(x, value, x->view.with_axis(axis, {{digit.axis, digit.weight, count}}));
}

TensorPointer selected(Call& call, const TensorPointer& x, int axis, int64_t index) {
  const TensorPointer one = part(call, x, axis, {index, index + 1});
  std::vector<bool> dropped(one->view.num_axes(), false);
  dropped[axis] = true;
  return make_view(x, one->value, one->view.without_axes(dropped));
}

namespace {

int64_t clamped(int64_t at, int64_t size) {
  return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size);
}

Symbols import_slice(Call& call) {
  const TensorPointer x = call.tensor_or_expanded("self");
  const int axis = call.axis("dim", *x);
  const int64_t size = size_of(x->view[axis]);
  Positions at{0, size, std::min(call.integer("step"), std::max<int64_t>(size, 1))};
  if (call.has("start")) at.begin = clamped(call.integer("start"), size);
  if (call.has("end")) at.end = clamped(call.integer("end"), size);
  const bool all = at.begin == 0 && at.end == size && at.step == 1;
  return {part(call, all ? x : call.tensor("self"), axis, at)};
}

Symbols import_narrow(Call& call) {
  const TensorPointer x = call.tensor("self");
  const int axis = call.axis("dim", *x);
  const int64_t size = size_of(x->view[axis]);
  const int64_t begin =
      call.integer("start") < 0 ? call.integer("start") + size : call.integer("start");
  const int64_t end = begin + std::clamp<int64_t>(call.integer("length"), 0, size + 1);
  if (begin < 0 || begin > size || end > size)
    call.refuse(fmt::format("takes [{}, {}) of an axis of {}", begin, end, size));
  return {part(call, x, axis, {begin, end})};
}

Symbols import_select(Call& call) {
  const TensorPointer x = call.tensor("self");
  const int axis = call.axis("dim", *x);
  const int64_t size = size_of(x->view[axis]);
  const int64_t index =
      call.integer("index") < 0 ? call.integer("index") + size : call.integer("index");
  if (index < 0 || index >= size)
    call.refuse(fmt::format("takes index {} of an axis of {}", call.integer("index"), size));
  return {selected(call, x, axis, index)};
}

Symbols import_unbind(Call& call) {
  const TensorPointer x = call.tensor("self");
  const int axis = call.axis("dim", *x);
  auto list = std::make_shared<ListSymbol>();
  for (int64_t index = 0; index < size_of(x->view[axis]); ++index)
    list->items.push_back(selected(call, x, axis, index));
  return {list};
}

Symbols parts(Call& call, const std::vector<int64_t>& sizes) {
  const TensorPointer x = call.tensor("self");
  const int axis = call.axis("dim", *x);
  const int64_t whole = size_of(x->view[axis]);
  auto list = std::make_shared<ListSymbol>();
  int64_t begin = 0;
  for (int64_t size : sizes) {
    if (size < 1) call.refuse(fmt::format("has a part of size {}", size));
    if (begin + size > whole) break;
    list->items.push_back(part(call, x, axis, {begin, begin + size}));
    begin += size;
  }
  if (begin != whole || list->items.size() != sizes.size())
    call.refuse(fmt::format("has parts of {} in all, the axis has {}",
                            std::accumulate(sizes.begin(), sizes.end(), int64_t{0}), whole));
  return {list};
}

/// Along axes of the value: the end, and then the beginning.
Symbols import_roll(Call& call) {
  const TensorPointer x = call.tensor("self");
  const std::vector<int64_t> shifts = call.integers("shifts"), dims = call.integers("dims");
  if (dims.size() != shifts.size()) call.refuse("rolls the flattened tensor; give dims");
  const auto rolled = make_tensor(x->value, x->view);
  for (size_t i = 0; i < dims.size(); ++i) {
    const int axis = call.wrap_axis(dims[i], rolled->view.num_axes());
    const int64_t size = size_of(rolled->view[axis]);
    const int64_t shift = ((shifts[i] % size) + size) % size;
    if (shift == 0) continue;
    const Shape value = call.type(rolled->value).shape();
    int along = rolled->view[axis][0].axis;
    if (along < 0 || !rolled->view.is_whole(axis, along, value)) {
      call.image(*rolled);
      along = axis;
    }
    if (along == 0) call.refuse("rolls the batch; roll channels or space");
    Recording& graph = call.graph();
    const ValueId end = slice(graph, rolled->value, call.name("roll"), {along, size - shift, size});
    const ValueId begin = slice(graph, rolled->value, call.name("roll"), {along, 0, size - shift});
    rolled->value = concat(graph, {end, begin}, call.name("roll"), along);
  }
  return {rolled};
}

std::vector<int64_t> equal_parts(int64_t whole, int64_t size) {
  std::vector<int64_t> sizes;
  for (int64_t begin = 0; begin < whole; begin += size)
    sizes.push_back(std::min(size, whole - begin));
  return sizes;
}

Symbols import_chunk(Call& call) {
  const TensorPointer x = call.tensor("self");
  const int64_t whole = size_of(x->view[call.axis("dim", *x)]);
  const int64_t chunks = std::min(call.integer("chunks"), whole);
  if (chunks < 1) call.refuse(fmt::format("makes {} chunks", chunks));
  return parts(call, equal_parts(whole, (whole + chunks - 1) / chunks));
}

Symbols import_split(Call& call) {
  const std::string name = call.has("split_sizes") ? "split_sizes" : "split_size";
  if (!std::holds_alternative<c10::IValue>(call[name])) return parts(call, call.integers(name));
  const TensorPointer x = call.tensor("self");
  const int64_t whole = size_of(x->view[call.axis("dim", *x)]), size = call.integer(name);
  if (size < 1) call.refuse(fmt::format("has a split size of {}", size));
  return parts(call, equal_parts(whole, size));
}

/// At positions, or in a number of parts, of which the first are the larger ones.
Symbols import_tensor_split(Call& call) {
  const TensorPointer x = call.tensor("self");
  const int64_t whole = size_of(x->view[call.axis("dim", *x)]);
  std::vector<int64_t> sizes;
  if (call.has("indices")) {
    int64_t begin = 0;
    for (int64_t end : call.integers("indices")) {
      const int64_t at = clamped(end, whole);
      if (at <= begin)
        call.refuse(
            fmt::format("cuts an axis of {} at {} after {}, which gives an empty part; give "
                        "positions that rise from 1 to {}",
                        whole, at, begin, whole - 1));
      sizes.push_back(at - begin);
      begin = at;
    }
    sizes.push_back(whole - begin);
  } else {
    const int64_t sections = call.integer("sections");
    if (sections < 1 || sections > whole) call.refuse(fmt::format("makes {} sections", sections));
    for (int64_t i = 0; i < sections; ++i)
      sizes.push_back(whole / sections + (i < whole % sections ? 1 : 0));
  }
  return parts(call, sizes);
}

}  // namespace

std::vector<Operator> slice_operators() {
  return {{{"aten::slice"}, "slices and crops along channels and space, with steps", import_slice},
          {{"aten::narrow"}, "as slice", import_narrow},
          {{"aten::select"}, "one channel, row or column", import_select},
          {{"aten::unbind"}, "as select, one by one", import_unbind},
          {{"aten::chunk"}, "slices", import_chunk},
          {{"aten::tensor_split"}, "slices", import_tensor_split},
          {{"aten::roll"}, "slices and their concatenation", import_roll},
          {{"aten::split", "aten::split_with_sizes"}, "slices", import_split}};
}

}  // namespace tessera
