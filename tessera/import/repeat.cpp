#include "tessera/import/repeat.h"

#include <fmt/format.h>

#include <algorithm>

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

/// `count` channels of one number, with the batch and space of x.
ValueId channels_of(const Call& call, ValueId x, int64_t count, double number) {
  std::vector<ValueId> parts;
  const int64_t own = call.type(x).channels();
  for (int64_t left = count; left > 0; left -= own) {
    const int64_t taken = std::min(left, own);
    const ValueId part =
        taken == own ? x : slice(call.graph(), x, call.name("slice"), {1, 0, taken, 1});
    parts.push_back(pointwise(call.graph(), part, call.name("constant"),
                              {PointwiseFunction::kAffine, 0, number}));
    if (parts.size() > static_cast<size_t>(kMostCopies)) call.refuse("pads too many channels");
  }
  return parts.size() == 1 ? parts[0] : concat(call.graph(), parts, call.name("constant"), 1);
}

Symbols import_repeat(Call& call) {
  const TensorPointer x = call.tensor("self");
  ValueId value = call.image("self");
  const std::vector<int64_t> counts =
      call.integers(call.op() == "aten::repeat" ? "repeats" : "dims");
  if (counts.size() > x->order.size() ||
      (call.op() == "aten::repeat" && counts.size() < x->order.size()))
    call.refuse(fmt::format("has {} counts for {} axes; give one for each", counts.size(),
                            x->order.size()));
  const int first = static_cast<int>(x->order.size() - counts.size());
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
  if (axis == 1)
    return call.result(count == 1 ? x
                                  : channel_shuffle(call.graph(), copies(call, x, 1, count),
                                                    call.name("interleave"), count));
  if (count < 1 || count > kMostCopies)
    call.refuse(fmt::format("makes {} copies; give a number from 1 to {}", count, kMostCopies));
  std::vector<int64_t> counts(call.type(x).num_spatial(), 1);
  counts[axis - 2] = count;
  return call.result(larger_pixels(call, x, counts));
}

}  // namespace

TensorPointer copy_expanded(const Call& call, const TensorPointer& tensor) {
  if (!std::is_sorted(tensor->order.begin(), tensor->order.end()))
    call.refuse(
        "reads a permuted tensor that was expanded; leave the expand() out, arithmetic broadcasts "
        "by itself");
  const Shape had = call.type(tensor->value).shape(), wanted = tensor->expanded;
  const int num_axes = static_cast<int>(had.size());
  if (wanted[0] != had[0]) call.refuse("expands the batch; the batch is what --input gives");
  // Channels first, as long as there are few pixels.
  ValueId value = num_axes > 1 ? copies(call, tensor->value, 1, wanted[1] / had[1]) : tensor->value;
  std::vector<int64_t> counts;
  for (int axis = 2; axis < num_axes; ++axis) counts.push_back(wanted[axis] / had[axis]);
  value = larger_pixels(call, value, counts);
  return make_tensor(value, num_axes);
}

ValueId pad_channels(const Call& call, ValueId x, int64_t low, int64_t high, double number) {
  const int64_t own = call.type(x).channels();
  const int64_t begin = std::max<int64_t>(-low, 0), end = own - std::max<int64_t>(-high, 0);
  if (begin >= end) call.refuse(fmt::format("cuts off {} and {} of {} channels", -low, -high, own));
  if (end - begin < own) x = slice(call.graph(), x, call.name("slice"), {1, begin, end, 1});
  std::vector<ValueId> parts;
  if (low > 0) parts.push_back(channels_of(call, x, low, number));
  parts.push_back(x);
  if (high > 0) parts.push_back(channels_of(call, x, high, number));
  return parts.size() == 1 ? x : concat(call.graph(), parts, call.name("pad"), 1);
}

ValueId filled_beside(const Call& call, const MadeSymbol& made, const TensorSymbol& other,
                      int axis) {
  if (made.holds != MadeSymbol::Holds::kNumber)
    call.refuse("joins " + describe(std::make_shared<MadeSymbol>(made)) +
                ", which has no known number");
  Shape shape = call.type(other.value).shape();
  const bool is_plain = std::is_sorted(other.order.begin(), other.order.end());
  if (made.shape.size() != shape.size() || !is_plain || axis != 1)
    call.refuse("joins a tensor of one number along another axis than the channels; use F.pad");
  shape[1] = made.shape[1];
  if (made.shape != shape)
    call.refuse(fmt::format("joins {} with {}; all sizes but the channels must be equal",
                            to_string(made.shape), to_string(call.type(other.value).shape())));
  return channels_of(call, other.value, made.shape[1], made.number);
}

std::vector<Operator> repeat_operators() {
  return {{{"aten::repeat", "aten::tile"}, "copies along channels and space", import_repeat},
          {{"aten::repeat_interleave"},
           "each channel, row or column several times",
           import_repeat_interleave}};
}

}  // namespace tessera
