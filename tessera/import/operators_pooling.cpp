#include <fmt/format.h>

#include "tessera/import/operators.h"
#include "tessera/ops/pool/adaptive_pool.h"
#include "tessera/ops/pool/pooling.h"

namespace tessera {
namespace {

PoolOptions window_of(Call& call) {
  PoolOptions options;
  options.kernel = call.window_numbers("kernel_size");
  if (!call.items("stride").empty()) options.stride = call.window_numbers("stride");
  options.padding = call.window_numbers("padding");
  options.ceil_mode = call.flag("ceil_mode");
  return options;
}

Symbols import_max_pool(Call& call) {
  PoolOptions options = window_of(call);
  options.dilation = call.window_numbers("dilation");
  Symbols results =
      call.result(max_pool(call.graph(), call.image("self"), call.name("max_pool"), options));
  if (call.op().ends_with("_with_indices"))
    results.push_back(std::make_shared<IndicesSymbol>(IndicesSymbol{call.image("self"), options}));
  return results;
}

/// An image with one axis of size 1 more: F.max_unpool1d is max_unpool2d of such images.
bool has_unit_axis_more(const Shape& shape, const Shape& other) {
  return shape.size() == other.size() + 1 && shape.back() == 1;
}

Symbols import_max_unpool(Call& call) {
  const auto* found = call.find<std::shared_ptr<IndicesSymbol>>("indices");
  if (!found)
    call.refuse("takes " + describe(call["indices"]) +
                " as indices; it needs those that a max pooling gives (return_indices=True)");
  const std::shared_ptr<IndicesSymbol>& indices = *found;
  const Shape pooled = call.type(indices->pooled).shape();
  ValueId values = call.image("self");
  const bool signal = has_unit_axis_more(call.type(values).shape(), pooled);
  const int last = static_cast<int>(pooled.size());
  if (signal) values = squeeze(call.graph(), values, call.name("squeeze"), last);
  Shape wanted = call.integers("output_size");
  if (signal && !wanted.empty()) wanted.pop_back();
  const Shape space(pooled.begin() + 2, pooled.end());
  if (wanted.size() > space.size()) wanted.erase(wanted.begin(), wanted.end() - std::ssize(space));
  if (wanted != space)
    call.refuse(fmt::format(
        "gives {} pixels, the max pooling had {}; give output_size=x.size() of what was pooled",
        to_string(wanted), to_string(space)));
  const ValueId back =
      max_unpool(call.graph(), values, indices->pooled, call.name("max_unpool"), indices->options);
  return call.result(signal ? unsqueeze(call.graph(), back, call.name("unsqueeze"), last) : back);
}

Symbols import_average_pool(Call& call) {
  PoolOptions options = window_of(call);
  options.count_include_pad = call.flag("count_include_pad");
  if (call.has("divisor_override")) {
    options.divisor_override = call.integer("divisor_override");
    if (options.divisor_override < 1)
      call.refuse(fmt::format("divisor_override {} must be at least 1", options.divisor_override));
  }
  return call.result(
      average_pool(call.graph(), call.image("self"), call.name("avg_pool"), options));
}

/// The sizes; in scripts None (the input's own size) arrives resolved or as None.
AdaptivePoolOptions adaptive_sizes(Call& call) {
  AdaptivePoolOptions options;
  for (const Symbol& item : call.items("output_size")) {
    const auto* number = std::get_if<c10::IValue>(&item);
    if (number && number->isNone())
      options.size.push_back(0);
    else if (number && number->isInt() && number->toInt() >= 1 && number->toInt() <= 1 << 20)
      options.size.push_back(number->toInt());
    else
      call.refuse("an output size is " + describe(item) + "; give whole numbers from 1");
  }
  return options;
}

Symbols import_adaptive_average(Call& call) {
  return call.result(adaptive_average_pool(call.graph(), call.image("self"),
                                           call.name("adaptive_avg_pool"), adaptive_sizes(call)));
}

Symbols import_adaptive_max(Call& call) {
  Symbols results = call.result(adaptive_max_pool(
      call.graph(), call.image("self"), call.name("adaptive_max_pool"), adaptive_sizes(call)));
  results.push_back(UnknownSymbol{"the indices of a max pooling, which Tessera does not give"});
  return results;
}

}  // namespace

/// F.max_unpool1d gives them the axis that it gives the values.
std::optional<Symbols> run_on_indices(Call& call) {
  const auto* indices = call.find<std::shared_ptr<IndicesSymbol>>("self");
  if (!indices || call.op() != "aten::unsqueeze") return std::nullopt;
  return Symbols{*indices};
}

std::vector<Operator> pooling_operators() {
  return {
      {{"aten::max_pool1d", "aten::max_pool2d", "aten::max_pool3d", "aten::max_pool1d_with_indices",
        "aten::max_pool2d_with_indices", "aten::max_pool3d_with_indices"},
       "max pooling with padding, dilation and ceil mode; its indices for max_unpool",
       import_max_pool},
      {{"aten::max_unpool2d", "aten::max_unpool3d"},
       "max unpooling to the size that was pooled, windows may overlap; also max_unpool1d",
       import_max_unpool},
      {{"aten::avg_pool1d", "aten::avg_pool2d", "aten::avg_pool3d"},
       "average pooling with padding, ceil mode and divisors",
       import_average_pool},
      {{"aten::adaptive_avg_pool1d", "aten::adaptive_avg_pool2d", "aten::adaptive_avg_pool3d"},
       "adaptive average pooling to any size",
       import_adaptive_average},
      {{"aten::adaptive_max_pool1d", "aten::adaptive_max_pool2d", "aten::adaptive_max_pool3d"},
       "adaptive max pooling to any size; not its indices",
       import_adaptive_max}};
}

}  // namespace tessera
