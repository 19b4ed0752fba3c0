#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "tessera/import/arrange.h"
#include "tessera/import/operators.h"
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
View reduced_view(const View& view, const std::vector<bool>& reduced, bool keep) {
  View left = view;
  for (int axis = 0; axis < view.num_axes(); ++axis)
    if (reduced[axis]) left = left.with_axis(axis, {});
  return keep ? left : left.without_axes(reduced);
}

/// Over parts of axes: groups of channels, windows.
Symbols sum_of_parts(Call& call, const TensorPointer& x, const std::vector<bool>& reduced,
                     bool keep, bool mean) {
  ViewDigits stay, gone;
  for (int axis = 0; axis < x->view.num_axes(); ++axis) {
    ViewDigits& list = reduced[axis] ? gone : stay;
    list.insert(list.end(), x->view[axis].begin(), x->view[axis].end());
  }
  std::vector<ViewDigits> axes;
  for (int axis = 0; axis < call.type(x->value).num_axes(); ++axis)
    axes.push_back(digits_along(stay, axis));
  auto sum = make_tensor(x->value, reduced_view(x->view, reduced, keep));
  arrange(call.graph(), *sum, axes, call.name("sum"), gone);
  const int64_t count = size_of(gone);
  if (mean)
    sum->value = pointwise(call.graph(), sum->value, call.name("mean"),
                           {PointwiseFunction::kAffine, 1.0 / static_cast<double>(count), 0});
  return {sum};
}

Symbols import_sum(Call& call, ChannelHow over_channels, SpaceHow over_space) {
  if (!call.has("dim"))
    call.refuse(
        "reduces the whole tensor to one number, which depends on all of the data; give the axes: "
        "dim=(2, 3)");
  if (call.has("dtype")) call.refuse("changes the type; leave dtype out");
  const TensorPointer x = call.tensor("self");
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
  return call.result(value, reduced_view(x->view, reduced.code, keep));
}

Symbols import_mean(Call& call) { return import_sum(call, ChannelHow::kMean, SpaceHow::kMean); }
Symbols import_plain_sum(Call& call) { return import_sum(call, ChannelHow::kSum, SpaceHow::kSum); }

Symbols maximum_over_channels(Call& call, const TensorPointer& x, int axis, bool keep) {
  const Shape shape = call.type(x->value).shape();
  if (!x->view.is_whole(axis, 1, shape)) {
    call.image(*x);
    if (axis != 1) call.refuse("works over the channels only; adaptive max pooling does space");
  }
  const ValueId value =
      channel_reduction(call.graph(), x->value, call.name("max"), {ChannelHow::kMax});
  std::vector<bool> reduced(x->view.num_axes(), false);
  reduced[axis] = true;
  return call.result(value, reduced_view(x->view, reduced, keep));
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
  Symbols results = maximum_over_channels(call, x, call.axis("dim", *x), call.flag("keepdim"));
  results.push_back(UnknownSymbol{"the indices of a maximum, which Tessera does not give"});
  return results;
}

Symbols import_min(Call& call) {
  if (!call.has("other")) call.refuse("over an axis is not supported; use -(-x).max(dim)");
  return call.result(arithmetic(call.graph(), call.image("self"), call.image("other"),
                                call.name("minimum"), Arithmetic::kMinimum));
}

Symbols import_amax(Call& call) {
  const TensorPointer x = call.tensor("self");
  Reduced reduced = reduced_axes(call, *x);
  if (!reduced.value) {
    call.image(*x);
    reduced = reduced_axes(call, *x);
  }
  const ValueId value = amax(call.graph(), x->value, call.name("amax"),
                             {std::vector<int>(reduced.value->begin(), reduced.value->end())});
  return call.result(value, reduced_view(x->view, reduced.code, call.flag("keepdim")));
}

}  // namespace

std::vector<Operator> reduction_operators() {
  return {
      {{"aten::mean"}, "mean over channels, space, or both; with and without keepdim", import_mean},
      {{"aten::sum"},
       "sum over channels, space, or both; with and without keepdim",
       import_plain_sum},
      {{"aten::max"}, "maximum over channels (its values), or of two tensors", import_max},
      {{"aten::min"}, "minimum of two tensors", import_min},
      {{"aten::amax"}, "maximum over channels, space, or both", import_amax}};
}

}  // namespace tessera
