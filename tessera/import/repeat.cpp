#include "tessera/import/repeat.h"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/import/operators.h"

namespace tessera {
namespace {

constexpr int64_t kMostCopies = 1 << 16;

/// x one after the other along an axis.
ValueId copies(const Call& call, ValueId x, int axis, int64_t count) {
  if (count == 1) return x;
  if (axis == 0) call.refuse("repeats the batch; repeat channels or space");
  if (count < 1 || count > kMostCopies)
    call.refuse(fmt::format("makes {} copies; give a number from 1 to {}", count, kMostCopies));
  return concat(call.graph(), std::vector<ValueId>(static_cast<size_t>(count), x),
                call.name("repeat"), axis);
}

/// Every pixel `counts` times along each spatial axis.
ValueId larger_pixels(const Call& call, ValueId x, const std::vector<int64_t>& counts) {
  InterpolateOptions options;
  options.mode = InterpolationMode::kNearest;
  const Shape shape = call.type(x).shape();
  for (size_t i = 0; i < counts.size(); ++i) options.size.push_back(shape[2 + i] * counts[i]);
  if (std::equal(options.size.begin(), options.size.end(), shape.begin() + 2)) return x;
  return interpolate(call.graph(), x, call.name("repeat"), options);
}

Symbols import_repeat(Call& call) {
  ValueId value = call.image("self");
  const size_t num_axes = call.type(value).axes.size();
  const std::vector<int64_t> counts =
      call.integers(call.op() == "aten::repeat" ? "repeats" : "dims");
  if (counts.size() > num_axes || (call.op() == "aten::repeat" && counts.size() < num_axes))
    call.refuse(fmt::format("has {} for {}; give one for each",
                            counted(std::ssize(counts), "count"),
                            counted(static_cast<int64_t>(num_axes), "axis", "axes")));
  const int first = static_cast<int>(num_axes - counts.size());
  for (size_t i = 0; i < counts.size(); ++i)
    value = copies(call, value, first + static_cast<int>(i), counts[i]);
  return call.result(value);
}

Symbols import_repeat_interleave(Call& call) {
  const ValueId x = call.image("self");
  if (!call.has("dim")) call.refuse("flattens the tensor; give dim");
  const int axis = call.axis("dim", *call.tensor("self"));
  const int64_t count = call.integer("repeats");
  if (axis == 0) call.refuse("repeats the batch; repeat channels or space");
  if (count < 1 || count > kMostCopies)
    call.refuse(fmt::format("makes {} copies; give a number from 1 to {}", count, kMostCopies));
  if (axis == 1) {
    const int64_t channels = call.type(x).channels();
    const ValueId value = copies(call, x, 1, count);
    const CodeView view = CodeView::plain(call.type(value).shape());
    return {make_tensor(value, view.with_axis(1, {{1, 1, channels}, {1, channels, count}}))};
  }
  std::vector<int64_t> counts(call.type(x).num_spatial(), 1);
  counts[axis - 2] = count;
  return call.result(larger_pixels(call, x, counts));
}

/// torch.stack: side by side in the channels, seen as an axis of their own.
Symbols import_stack(Call& call) {
  std::vector<TensorPointer> items;
  for (const Symbol& symbol : call.items("tensors")) {
    const auto* tensor = std::get_if<TensorPointer>(&symbol);
    if (!tensor) call.refuse("stacks " + describe(symbol) + "; stack tensors of the network");
    if (!(*tensor)->stale.empty()) call.refuse("reads a tensor too late: " + (*tensor)->stale);
    items.push_back((*tensor)->view.is_stretched() ? copy_stretched(call, **tensor) : *tensor);
    if (items.back()->view.shape() != items[0]->view.shape())
      call.refuse(fmt::format("stacks {} and {}; shapes must be equal",
                              to_string(items[0]->view.shape()),
                              to_string(items.back()->view.shape())));
  }
  if (items.empty()) call.refuse("stacks nothing");
  const bool alike = std::all_of(items.begin(), items.end(), [&](const TensorPointer& item) {
    return item->view == items[0]->view &&
           call.type(item->value).shape() == call.type(items[0]->value).shape();
  });
  std::vector<ValueId> values;
  for (const TensorPointer& item : items) {
    if (!alike) call.image(*item);
    const ValueType& type = call.type(item->value);
    const bool has_channels = type.num_axes() > 1 && type.axes[1].kind == AxisKind::kChannel;
    values.push_back(has_channels ? item->value
                                  : unsqueeze(call.graph(), item->value, call.name("stack"), 1));
  }
  const bool added_channels = values[0] != items[0]->value;
  const int64_t channels = call.type(values[0]).channels();
  std::vector<ViewDigits> axes = items[0]->view.axes();
  for (ViewDigits& digits : axes)
    for (ViewDigit& digit : digits)
      if (added_channels && digit.axis > 0) ++digit.axis;
  const int axis = call.wrap_axis(call.integer("dim"), static_cast<int>(axes.size()) + 1);
  axes.insert(axes.begin() + axis, {{1, channels, std::ssize(items)}});
  const ValueId value =
      values.size() == 1 ? values[0] : concat(call.graph(), values, call.name("stack"), 1);
  return {make_tensor(value, CodeView(std::move(axes)))};
}

}  // namespace

TensorPointer copy_stretched(const Call& call, const TensorSymbol& tensor) {
  const Shape had = call.type(tensor.value).shape(), wanted = tensor.view.shape();
  std::vector<ViewDigits> axes = tensor.view.axes();
  int64_t count = 1;
  for (ViewDigits& digits : axes)
    if (digits.size() == 1 && digits[0].axis == ViewDigit::kStretched) digits.clear();
  if (CodeView(axes).is_plain(had) && wanted[0] == had[0]) {
    // Channels first, as long as there are few pixels.
    ValueId value =
        had.size() > 1 ? copies(call, tensor.value, 1, wanted[1] / had[1]) : tensor.value;
    std::vector<int64_t> counts;
    for (size_t axis = 2; axis < had.size(); ++axis) counts.push_back(wanted[axis] / had[axis]);
    return make_tensor(larger_pixels(call, value, counts), CodeView::plain(wanted));
  }
  // Copies side by side in the channels, seen where the code wants them.
  axes = tensor.view.axes();
  const int64_t channels = had.size() > 1 ? had[1] : 0;
  if (channels == 0) call.refuse("expands a tensor without channels");
  for (auto digits = axes.rbegin(); digits != axes.rend(); ++digits)
    for (auto digit = digits->rbegin(); digit != digits->rend(); ++digit) {
      if (digit->axis != ViewDigit::kStretched) continue;
      *digit = {1, channels * count, digit->size};
      count *= digit->size;
    }
  return make_tensor(copies(call, tensor.value, 1, count), CodeView(std::move(axes)));
}

ValueId pad_channels(const Call& call, ValueId x, int64_t low, int64_t high, double number) {
  const int64_t own = call.type(x).channels();
  const int64_t begin = std::max<int64_t>(-low, 0), end = own - std::max<int64_t>(-high, 0);
  if (begin >= end) call.refuse(fmt::format("cuts off {} and {} of {} channels", -low, -high, own));
  if (end - begin < own) x = slice(call.graph(), x, call.name("slice"), {1, begin, end, 1});
  std::vector<ValueId> parts;
  if (low > 0) parts.push_back(filled_beside(call, x, 1, low, number));
  parts.push_back(x);
  if (high > 0) parts.push_back(filled_beside(call, x, 1, high, number));
  return parts.size() == 1 ? x : concat(call.graph(), parts, call.name("pad"), 1);
}

ValueId filled_beside(const Call& call, ValueId x, int axis, int64_t count, double number) {
  std::vector<ValueId> parts;
  const int64_t own = call.type(x).axes[axis].size;
  for (int64_t left = count; left > 0; left -= own) {
    const int64_t taken = std::min(left, own);
    const ValueId part =
        taken == own ? x : slice(call.graph(), x, call.name("slice"), {axis, 0, taken, 1});
    parts.push_back(pointwise(call.graph(), part, call.name("constant"),
                              {PointwiseFunction::kAffine, 0, number}));
    if (parts.size() > static_cast<size_t>(kMostCopies)) call.refuse("joins too many numbers");
  }
  if (parts.empty()) call.refuse("joins nothing");
  return parts.size() == 1 ? parts[0] : concat(call.graph(), parts, call.name("constant"), axis);
}

std::vector<Operator> repeat_operators() {
  return {{{"aten::stack"}, "concatenation of channels, seen as an axis of its own", import_stack},
          {{"aten::repeat", "aten::tile"}, "copies along channels and space", import_repeat},
          {{"aten::repeat_interleave"},
           "each channel, row or column several times",
           import_repeat_interleave}};
}

}  // namespace tessera
