#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "tessera/import/operators.h"
#include "tessera/ops/pointwise/arithmetic.h"
#include "tessera/ops/pointwise/channel_reduction.h"
#include "tessera/ops/pointwise/pointwise.h"
#include "tessera/ops/pool/amax.h"
#include "tessera/ops/pool/spatial_reduction.h"
#include "tessera/ops/shape/unit_axes.h"

namespace tessera {
namespace {

using ChannelHow = ChannelReductionOptions::How;
using SpaceHow = SpatialReductionOptions::How;

/// The value's axes that the code reduces.
std::set<int> reduced_axes(Call& call, const TensorSymbol& x) {
  std::set<int> axes;
  for (int64_t axis : call.integers("dim"))
    axes.insert(x.order[call.wrap_axis(axis, static_cast<int>(x.order.size()))]);
  if (axes.empty())
    for (int axis : x.order) axes.insert(axis);
  if (axes.contains(0)) call.refuse("reduces the batch; reduce channels and space only");
  return axes;
}

/// Drops the reduced axes, which have size 1 now, from the last to the first.
ValueId drop(Call& call, ValueId value, const std::set<int>& axes) {
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis)
    value = squeeze(call.graph(), value, call.name("squeeze"), *axis);
  return value;
}

void check_reduction(Call& call) {
  if (!call.has("dim"))
    call.refuse(
        "reduces the whole tensor to one number, which depends on all of the data; give the axes: "
        "dim=(2, 3)");
  if (call.has("dtype")) call.refuse("changes the type; leave dtype out");
}

/// The sums along the axes that the code means, which stay with size 1.
ValueId reduced(Call& call, ValueId value, const std::set<int>& axes, ChannelHow over_channels,
                SpaceHow over_space) {
  const std::string kind = call.op().substr(6);
  std::vector<int> spatial;
  for (int axis : axes)
    if (axis >= 2) spatial.push_back(axis - 2);
  if (!spatial.empty())
    value = spatial_reduction(call.graph(), value, call.name(kind), {over_space, spatial, true});
  if (axes.contains(1))
    value = channel_reduction(call.graph(), value, call.name(kind), {over_channels});
  return value;
}

/// With or without the axes, as the code wants it.
Symbols reduced_result(Call& call, ValueId value, const std::set<int>& axes,
                       const TensorSymbol& x) {
  if (call.flag("keepdim")) return call.result_like(value, x);
  if (!std::is_sorted(x.order.begin(), x.order.end()))
    call.refuse("drops axes of a permuted tensor; give keepdim=True, or permute it back first");
  return call.result(drop(call, value, axes));
}

Symbols import_sum(Call& call, ChannelHow over_channels, SpaceHow over_space) {
  check_reduction(call);
  const TensorPointer x = call.tensor("self");
  const std::set<int> axes = reduced_axes(call, *x);
  const bool to_features = !call.flag("keepdim") && !axes.contains(1) &&
                           static_cast<int>(axes.size()) == call.type(x->value).num_spatial();
  if (to_features)
    return call.result(spatial_reduction(call.graph(), call.image("self"),
                                         call.name(call.op().substr(6)), {over_space, {}, false}));
  return reduced_result(call, reduced(call, x->value, axes, over_channels, over_space), axes, *x);
}

Symbols import_mean(Call& call) { return import_sum(call, ChannelHow::kMean, SpaceHow::kMean); }
Symbols import_plain_sum(Call& call) { return import_sum(call, ChannelHow::kSum, SpaceHow::kSum); }

double order_of_norm(Call& call) {
  for (const char* name : {"p", "ord"})
    if (call.has(name)) return call.real(name);
  return 2;
}

/// Norms of order 1, 2 and infinity, of each sample.
Symbols import_norm(Call& call) {
  check_reduction(call);
  const TensorPointer x = call.tensor("self");
  const std::set<int> axes = reduced_axes(call, *x);
  const double order = order_of_norm(call);
  const auto function = [&](ValueId value, const std::string& kind, PointwiseFunction how) {
    return pointwise(call.graph(), value, call.name(kind), {how, 0, 0});
  };
  ValueId value = x->value;
  if (order == 2) {
    value = function(value, "square", PointwiseFunction::kSquare);
    value = reduced(call, value, axes, ChannelHow::kSum, SpaceHow::kSum);
    value = function(value, "root", PointwiseFunction::kNormRoot);
  } else if (order == 1) {
    value = function(value, "abs", PointwiseFunction::kAbs);
    value = reduced(call, value, axes, ChannelHow::kSum, SpaceHow::kSum);
  } else if (order == std::numeric_limits<double>::infinity()) {
    value = function(value, "abs", PointwiseFunction::kAbs);
    value =
        amax(call.graph(), value, call.name("amax"), {std::vector<int>(axes.begin(), axes.end())});
  } else {
    call.refuse(fmt::format("is a norm of order {}; Tessera has 1, 2 and infinity", order));
  }
  return reduced_result(call, value, axes, *x);
}

Symbols maximum_over_channels(Call& call, int axis, bool keep) {
  const ValueId x = call.image("self");
  if (axis != 1) call.refuse("works over the channels only; adaptive max pooling does space");
  const ValueId value = channel_reduction(call.graph(), x, call.name("max"), {ChannelHow::kMax});
  return call.result(keep ? value : drop(call, value, {1}));
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
  Symbols results = maximum_over_channels(call, call.axis("dim", *x), call.flag("keepdim"));
  results.push_back(UnknownSymbol{"the indices of a maximum, which Tessera does not give"});
  return results;
}

Symbols import_min(Call& call) {
  if (!call.has("other")) call.refuse("over an axis is not supported; use -(-x).max(dim)");
  return call.result(arithmetic(call.graph(), call.image("self"), call.image("other"),
                                call.name("minimum"), Arithmetic::kMinimum));
}

Symbols import_amax(Call& call) {
  const ValueId x = call.image("self");
  const std::set<int> axes = reduced_axes(call, *call.tensor("self"));
  const ValueId value =
      amax(call.graph(), x, call.name("amax"), {std::vector<int>(axes.begin(), axes.end())});
  return call.result(call.flag("keepdim") ? value : drop(call, value, axes));
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
