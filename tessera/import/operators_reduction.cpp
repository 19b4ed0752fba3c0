#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tessera/import/operators.h"
#include "tessera/ops/pointwise/arithmetic.h"
#include "tessera/ops/pointwise/channel_reduction.h"
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

Symbols import_sum(Call& call, ChannelHow over_channels, SpaceHow over_space) {
  if (!call.has("dim"))
    call.refuse(
        "reduces the whole tensor to one number, which depends on all of the data; give the axes: "
        "dim=(2, 3)");
  if (call.has("dtype")) call.refuse("changes the type; leave dtype out");
  const ValueId x = call.image("self");
  const TensorPointer tensor = call.tensor("self");
  const std::set<int> axes = reduced_axes(call, *tensor);
  const std::string kind = call.op().substr(6);
  std::vector<int> spatial;
  for (int axis : axes)
    if (axis >= 2) spatial.push_back(axis - 2);
  ValueId value = x;
  const bool keep = call.flag("keepdim");
  const bool whole_space = static_cast<int>(spatial.size()) == call.type(x).num_spatial();
  if (!spatial.empty()) {
    SpatialReductionOptions options{over_space, spatial, true};
    if (!keep && whole_space && !axes.contains(1)) {
      options.keep_axes = false;
      return call.result(spatial_reduction(call.graph(), value, call.name(kind), options));
    }
    value = spatial_reduction(call.graph(), value, call.name(kind), options);
  }
  if (axes.contains(1))
    value = channel_reduction(call.graph(), value, call.name(kind), {over_channels});
  return call.result(keep ? value : drop(call, value, axes));
}

Symbols import_mean(Call& call) { return import_sum(call, ChannelHow::kMean, SpaceHow::kMean); }
Symbols import_plain_sum(Call& call) { return import_sum(call, ChannelHow::kSum, SpaceHow::kSum); }

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
      {{"aten::max"}, "maximum over channels (its values), or of two tensors", import_max},
      {{"aten::min"}, "minimum of two tensors", import_min},
      {{"aten::amax"}, "maximum over channels, space, or both", import_amax}};
}

}  // namespace tessera
