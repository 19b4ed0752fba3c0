#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>

#include "tessera/import/arrange.h"
#include "tessera/import/operators.h"
#include "tessera/import/slices.h"
#include "tessera/ops/pointwise/arithmetic.h"
#include "tessera/ops/pointwise/channel_reduction.h"
#include "tessera/ops/pointwise/pointwise.h"
#include "tessera/ops/pool/amax.h"
#include "tessera/ops/pool/spatial_reduction.h"

namespace tessera {
namespace {

using ChannelHow = ChannelReductionOptions::How;
using SpaceHow = SpatialReductionOptions::How;

/// What the code reduces: axes of its own, and where these are whole axes of the value, those.
struct Reduced {
  std::vector<bool> code;
  std::optional<std::set<int>> value;
};

Reduced reduced_axes(Call& call, const TensorSymbol& x) {
  Reduced reduced{std::vector<bool>(x.view.num_axes(), false), std::set<int>()};
  std::vector<int64_t> axes = call.integers("dim");
  for (int64_t axis : axes) reduced.code[call.wrap_axis(axis, x.view.num_axes())] = true;
  if (axes.empty()) reduced.code.assign(reduced.code.size(), true);
  ViewDigits gone;
  for (int axis = 0; axis < x.view.num_axes(); ++axis)
    if (reduced.code[axis]) gone.insert(gone.end(), x.view[axis].begin(), x.view[axis].end());
  const ValueType& type = call.type(x.value);
  for (int axis = 0; axis < type.num_axes(); ++axis) {
    const ViewDigits along = digits_along(gone, axis);
    if (along.empty()) continue;
    if (axis == 0) call.refuse("reduces the batch; reduce channels and space only");
    if (size_of(along) != type.axes[axis].size)
      reduced.value.reset();
    else if (reduced.value)
      reduced.value->insert(axis);
  }
  return reduced;
}

/// How the code sees the tensor afterwards: reduced axes have size 1, or go.
CodeView reduced_view(const CodeView& view, const std::vector<bool>& reduced, bool keep) {
  CodeView left = view;
  for (int axis = 0; axis < view.num_axes(); ++axis)
    if (reduced[axis]) left = left.with_axis(axis, {});
  return keep ? left : left.without_axes(reduced);
}

/// Over parts of axes: groups of channels, windows.
TensorPointer sum_of_parts(Call& call, const TensorPointer& x, const std::vector<bool>& reduced,
                           bool keep, bool mean) {
  ViewDigits stay, gone;
  for (int axis = 0; axis < x->view.num_axes(); ++axis) {
    ViewDigits& list = reduced[axis] ? gone : stay;
    list.insert(list.end(), x->view[axis].begin(), x->view[axis].end());
  }
  const std::vector<ViewDigits> axes = digits_by_axis(stay, call.type(x->value).num_axes());
  auto sum = make_tensor(x->value, reduced_view(x->view, reduced, keep));
  arrange(call.graph(), *sum, axes, call.name("sum"), gone);
  const int64_t count = size_of(gone);
  if (mean)
    sum->value = pointwise(call.graph(), sum->value, call.name("mean"),
                           {PointwiseFunction::kAffine, 1.0 / static_cast<double>(count), 0});
  return sum;
}

void check_reduction(Call& call) {
  if (!call.has("dim"))
    call.refuse(
        "reduces the whole tensor to one number, which depends on all of the data; give the axes: "
        "dim=(2, 3)");
  if (call.has("dtype")) call.refuse("changes the type; leave dtype out");
}

TensorPointer summed(Call& call, const TensorPointer& x, ChannelHow over_channels,
                     SpaceHow over_space) {
  const bool keep = call.flag("keepdim");
  const Reduced reduced = reduced_axes(call, *x);
  if (!reduced.value)
    return sum_of_parts(call, x, reduced.code, keep, over_channels == ChannelHow::kMean);
  const std::string kind = call.op().substr(6);
  const int num_spatial = call.type(x->value).num_spatial();
  std::vector<int> spatial;
  for (int axis : *reduced.value)
    if (axis >= 2) spatial.push_back(axis - 2);
  ValueId value = x->value;
  const bool whole_space = static_cast<int>(spatial.size()) == num_spatial;
  if (!spatial.empty()) {
    SpatialReductionOptions options{over_space, spatial, true};
    options.keep_axes = keep || !whole_space || reduced.value->contains(1);
    value = spatial_reduction(call.graph(), value, call.name(kind), options);
  }
  if (reduced.value->contains(1))
    value = channel_reduction(call.graph(), value, call.name(kind), {over_channels});
  return make_tensor(value, reduced_view(x->view, reduced.code, keep));
}

Symbols import_sum(Call& call, ChannelHow over_channels, SpaceHow over_space) {
  check_reduction(call);
  return {summed(call, call.tensor("self"), over_channels, over_space)};
}

Symbols import_mean(Call& call) { return import_sum(call, ChannelHow::kMean, SpaceHow::kMean); }
Symbols import_plain_sum(Call& call) { return import_sum(call, ChannelHow::kSum, SpaceHow::kSum); }

TensorPointer mapped(Call& call, const TensorPointer& x, const std::string& kind,
                     PointwiseFunction function) {
  return make_tensor(pointwise(call.graph(), x->value, call.name(kind), {function, 0, 0}), x->view);
}

TensorPointer largest(Call& call, const TensorPointer& x) {
  Reduced reduced = reduced_axes(call, *x);
  if (!reduced.value) {
    call.image(*x);
    reduced = reduced_axes(call, *x);
  }
  const ValueId value = amax(call.graph(), x->value, call.name("amax"),
                             {std::vector<int>(reduced.value->begin(), reduced.value->end())});
  return make_tensor(value, reduced_view(x->view, reduced.code, call.flag("keepdim")));
}

double order_of_norm(Call& call) {
  for (const char* name : {"p", "ord"})
    if (call.has(name)) return call.real(name);
  return 2;
}

/// Norms of order 1, 2 and infinity, of each sample.
Symbols import_norm(Call& call) {
  check_reduction(call);
  const TensorPointer x = call.tensor("self");
  const double order = order_of_norm(call);
  if (order == 2) {
    const TensorPointer squares = mapped(call, x, "square", PointwiseFunction::kSquare);
    const TensorPointer sum = summed(call, squares, ChannelHow::kSum, SpaceHow::kSum);
    return {mapped(call, sum, "root", PointwiseFunction::kNormRoot)};
  }
  const TensorPointer sizes = mapped(call, x, "abs", PointwiseFunction::kAbs);
  if (order == 1) return {summed(call, sizes, ChannelHow::kSum, SpaceHow::kSum)};
  if (order == std::numeric_limits<double>::infinity()) return {largest(call, sizes)};
  call.refuse(fmt::format("is a norm of order {}; Tessera has 1, 2 and infinity", order));
}

/// Of the positions of an axis that is a part of the channels: stacked tensors, maxout.
TensorPointer largest_of_parts(Call& call, const TensorPointer& x, int axis, Arithmetic how) {
  constexpr int64_t kMostParts = 64;
  const int64_t count = size_of(x->view[axis]);
  if (count > kMostParts)
    call.refuse(fmt::format("compares {} parts of the channels; Tessera takes up to {}", count,
                            kMostParts));
  TensorPointer most = selected(call, x, axis, 0);
  for (int64_t i = 1; i < count; ++i) {
    const TensorPointer next = selected(call, x, axis, i);
    most = make_tensor(
        arithmetic(call.graph(), most->value, next->value, call.name(to_string(how)), how),
        most->view);
  }
  return most;
}

bool is_part_of_channels(Call& call, const TensorSymbol& x, int axis) {
  const ViewDigits& digits = x.view[axis];
  return !x.view.is_whole(axis, 1, call.type(x.value).shape()) && !digits.empty() &&
         std::all_of(digits.begin(), digits.end(), [](const ViewDigit& d) { return d.axis == 1; });
}

/// With an axis of size 1 where another one was reduced away.
TensorPointer with_unit_axis(const TensorPointer& x, int axis) {
  Shape shape = x->view.shape();
  shape.insert(shape.begin() + axis, 1);
  return make_view(x, x->value, *x->view.reshaped(shape));
}

TensorPointer maximum_along(Call& call, const TensorPointer& x, int axis, bool keep) {
  if (is_part_of_channels(call, *x, axis)) {
    const TensorPointer most = largest_of_parts(call, x, axis, Arithmetic::kFirstMaximum);
    return keep ? with_unit_axis(most, axis) : most;
  }
  if (!x->view.is_whole(axis, 1, call.type(x->value).shape())) {
    call.image(*x);
    if (axis != 1) call.refuse("works over the channels only; adaptive max pooling does space");
  }
  const ValueId value =
      channel_reduction(call.graph(), x->value, call.name("max"), {ChannelHow::kMax});
  std::vector<bool> reduced(x->view.num_axes(), false);
  reduced[axis] = true;
  return make_tensor(value, reduced_view(x->view, reduced, keep));
}

/// max(x, dim) gives values and indices; max(x, y) is the larger of two.
Symbols import_max(Call& call) {
  if (call.has("other"))
    return call.result(arithmetic(call.graph(), call.image("self"), call.image("other"),
                                  call.name("maximum"), Arithmetic::kMaximum));
  if (!call.has("dim"))
    call.refuse(
        "reduces the whole tensor to one number, which depends on all of the data; give the axis: "
        "dim=1");
  const TensorPointer x = call.tensor("self");
  Symbols results{maximum_along(call, x, call.axis("dim", *x), call.flag("keepdim"))};
  results.push_back(UnknownSymbol{"the indices of a maximum, which Tessera does not give"});
  return results;
}

Symbols import_min(Call& call) {
  if (!call.has("other")) call.refuse("over an axis is not supported; use -(-x).max(dim)");
  return call.result(arithmetic(call.graph(), call.image("self"), call.image("other"),
                                call.name("minimum"), Arithmetic::kMinimum));
}

/// A part of the channels as an axis after them.
TensorPointer with_axis_of_its_own(Call& call, const TensorSymbol& x, int axis) {
  constexpr size_t kMostAxes = 5;
  const ViewDigits wanted = x.view[axis];
  std::vector<ViewDigits> axes =
      digits_by_axis(digits_without(x.view.digits(), wanted), call.type(x.value).num_axes());
  axes.insert(axes.begin() + 2, wanted);
  while (axes.size() > kMostAxes) {
    axes[3].insert(axes[3].end(), axes[4].begin(), axes[4].end());
    axes.erase(axes.begin() + 4);
  }
  const TensorPointer own = make_tensor(x.value, x.view);
  arrange(call.graph(), *own, axes, call.name("rearrange"));
  return own;
}

Symbols import_amax(Call& call) {
  const TensorPointer x = call.tensor("self");
  const std::vector<int64_t> dims = call.integers("dim");
  const int axis = dims.size() == 1 ? call.wrap_axis(dims[0], x->view.num_axes()) : -1;
  if (axis < 0 || !is_part_of_channels(call, *x, axis)) return {largest(call, x)};
  if (size_of(x->view[axis]) > 2)  // equal ones share a gradient, which pairs would halve twice
    return {largest(call, with_axis_of_its_own(call, *x, axis))};
  const TensorPointer most = largest_of_parts(call, x, axis, Arithmetic::kMaximum);
  return {call.flag("keepdim") ? with_unit_axis(most, axis) : most};
}

}  // namespace

std::vector<Operator> reduction_operators() {
  return {
      {{"aten::mean"}, "mean over channels, space, or both; with and without keepdim", import_mean},
      {{"aten::sum"},
       "sum over channels, space, or both; with and without keepdim",
       import_plain_sum},
      {{"aten::norm", "aten::linalg_vector_norm", "aten::frobenius_norm"},
       "norms of order 1, 2 and infinity over channels, space, or both",
       import_norm},
      {{"aten::max"}, "maximum over channels (its values), or of two tensors", import_max},
      {{"aten::min"}, "minimum of two tensors", import_min},
      {{"aten::amax"}, "maximum over channels, space, or both", import_amax}};
}

}  // namespace tessera
