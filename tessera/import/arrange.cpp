#include "tessera/import/arrange.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/geometry/digits.h"

namespace tessera {
namespace {

constexpr int kBatch = 0, kChannels = 1;
constexpr int kMaxSpace = 3;

Shape shape_of(const Recording& graph, const TensorSymbol& tensor) {
  return graph.type(tensor.value).shape();
}

/// What lies where in a value: a letter for each digit, and where each digit went.
class Letters {
 public:
  Letters(const Shape& value, const std::vector<ViewDigits>& axes, const ViewDigits& summed) {
    sizes_.push_back(value[kBatch]);
    letters_.push_back({kBatch, 1, value[kBatch]});
    to_.push_back({0});
    for (size_t axis = 1; axis < axes.size(); ++axis) {
      std::vector<int64_t> sizes;
      std::vector<int>& letters = to_.emplace_back();
      for (const ViewDigit& digit : axes[axis]) {
        letters.push_back(static_cast<int>(sizes_.size()));
        sizes.push_back(digit.size);
        sizes_.push_back(digit.size);
        letters_.push_back(digit);
      }
      for (int64_t weight : digit_weights(sizes))
        places_.push_back({static_cast<int>(axis), weight, 1});
    }
    for (const ViewDigit& digit : summed) {
      sizes_.push_back(digit.size);
      letters_.push_back(digit);
    }
    for (size_t axis = 0; axis < value.size(); ++axis) from_.push_back(letters_of(axis));
  }

  Arrangement arrangement() const { return {sizes_, {from_}, to_}; }

  /// The same digit in the new value, as one or more.
  ViewDigits moved(const ViewDigit& digit) const {
    ViewDigits parts;
    for (const ViewDigit& letter : digits_along(letters_, digit.axis)) {
      const bool inside =
          letter.weight >= digit.weight && letter.weight * letter.size <= digit.weight * digit.size;
      if (!inside) continue;
      const size_t index = std::find(letters_.begin(), letters_.end(), letter) - letters_.begin();
      ViewDigit place = index == 0 ? ViewDigit{kBatch, 1, 1} : places_[index - 1];
      place.size = letter.size;
      parts.push_back(place);
    }
    TESSERA_CHECK(size_of(parts) == digit.size, "a digit of {} became {}", digit.size,
                  size_of(parts));
    return parts;
  }

 private:
  std::vector<int> letters_of(size_t axis) const {
    if (axis == kBatch) return {0};
    std::vector<int> letters;
    for (const ViewDigit& digit : digits_along(letters_, static_cast<int>(axis)))
      letters.push_back(
          static_cast<int>(std::find(letters_.begin(), letters_.end(), digit) - letters_.begin()));
    return letters;
  }

  std::vector<int64_t> sizes_;
  ViewDigits letters_;  // of the old value; the first is the batch
  ViewDigits places_;   // in the new value, without the batch's
  Lettering from_, to_;
};

/// A value whose channels were squeezed away has pixels there.
bool has_channels(const ValueType& type) {
  return type.num_axes() > kChannels && type.axes[kChannels].kind == AxisKind::kChannel;
}

/// Whether only axes of size 1 come and go, and channels stay channels.
bool differs_by_units(const CodeView& view, const ValueType& type) {
  const Shape value = type.shape();
  const bool keeps_channels =
      has_channels(type) ? view.num_axes() > 1 && view.is_whole(kChannels, kChannels, value)
                         : view.num_axes() < 2 || view[kChannels].empty();
  const bool drops_channels =
      has_channels(type) && value[kChannels] == 1 && view.num_axes() + 1 == std::ssize(value);
  if (!keeps_channels && !drops_channels) return false;
  const auto without_units = [](const CodeView& whole) {
    std::vector<ViewDigits> rest;
    for (int axis = 1; axis < whole.num_axes(); ++axis)
      if (!whole[axis].empty()) rest.push_back(whole[axis]);
    return rest;
  };
  return without_units(view) == without_units(CodeView::plain(value));
}

/// Takes away and puts in axes of size 1, from the end to the front.
ValueId with_unit_axes(Recording& graph, ValueId value, const Shape& wanted,
                       const std::string& name) {
  const Shape had = graph.type(value).shape();
  for (int axis = static_cast<int>(had.size()) - 1; axis >= 1; --axis)
    if (had[axis] == 1) value = squeeze(graph, value, name, axis);
  for (int axis = 1; axis < static_cast<int>(wanted.size()); ++axis)
    if (wanted[axis] == 1) value = unsqueeze(graph, value, name, axis);
  return value;
}

/// All of the value but the batch, in its own order, as one axis.
bool is_flat(const CodeView& view, const Shape& value) {
  return view.num_axes() == 2 && value.size() > 2 &&
         CodeView::plain(value).reshaped(view.shape()) == view;
}

/// What is left of each axis of the value without `taken`; axes of which nothing is left are left
/// out.
std::vector<ViewDigits> axes_left(const ViewDigits& all, const ViewDigits& taken, int first_axis,
                                  int num_axes) {
  std::vector<ViewDigits> axes = digits_by_axis(digits_without(all, taken), num_axes);
  axes.erase(axes.begin(), axes.begin() + first_axis);
  std::erase_if(axes, [](const ViewDigits& digits) { return digits.empty(); });
  return axes;
}

}  // namespace

void arrange(Recording& graph, TensorSymbol& tensor, const std::vector<ViewDigits>& axes,
             const std::string& name, const ViewDigits& summed) {
  const Letters letters(shape_of(graph, tensor), axes, summed);
  std::vector<ViewDigits> seen;
  for (const ViewDigits& digits : tensor.view.axes()) {
    ViewDigits& axis = seen.emplace_back();
    for (const ViewDigit& digit : digits) {
      const ViewDigits moved = letters.moved(digit);
      axis.insert(axis.end(), moved.begin(), moved.end());
    }
  }
  tensor.value = rearrange(graph, tensor.value, name, letters.arrangement());
  tensor.view = CodeView(std::move(seen));
}

std::string why_not_plain(const Recording& graph, const TensorSymbol& tensor) {
  const CodeView& view = tensor.view;
  const Shape value = shape_of(graph, tensor);
  if (view.is_plain(value)) return {};
  if (view.is_stretched())
    return "is an expanded tensor; leave the expand() out, arithmetic broadcasts by itself";
  if (view.num_axes() == 0 || !view.is_whole(0, kBatch, value))
    return "is a tensor whose first axis is not the batch alone; bring the batch back to the front "
           "first";
  if (view.num_axes() > kMaxSpace + 2)
    return "is a tensor with " + std::to_string(view.num_axes()) +
           " axes; Tessera takes batch, channels and up to 3 more";
  return {};
}

ValueId plain_value(Recording& graph, TensorSymbol& tensor, const std::string& name) {
  const Shape value = shape_of(graph, tensor);
  if (tensor.view.is_plain(value)) return tensor.value;
  const Shape wanted = tensor.view.shape();
  if (differs_by_units(tensor.view, graph.type(tensor.value))) {
    tensor.value = with_unit_axes(graph, tensor.value, wanted, name);
    tensor.view = CodeView::plain(wanted);
  } else if (is_flat(tensor.view, value)) {
    tensor.value = flatten(graph, tensor.value);
    tensor.view = CodeView::plain(wanted);
  } else {
    arrange(graph, tensor, tensor.view.axes(), name);
  }
  return tensor.value;
}

int64_t bring_to_channels(Recording& graph, TensorSymbol& tensor, int axis,
                          const std::string& name) {
  const int num_axes = graph.type(tensor.value).num_axes();
  const ViewDigits all = tensor.view.digits(), wanted = tensor.view[axis];
  const ViewDigits channels = digits_along(all, kChannels);
  const bool there = has_channels(graph.type(tensor.value)) && channels.size() >= wanted.size() &&
                     std::equal(wanted.rbegin(), wanted.rend(), channels.rbegin());
  if (there) return graph.type(tensor.value).channels() / size_of(wanted);
  ViewDigits rest = digits_without(channels, wanted);  // what else is in the channels
  std::vector<ViewDigits> space = axes_left(all, wanted, kChannels + 1, num_axes);
  // Where no pixels are left, others become pixels: what is cut into parts is small then.
  if (space.empty())
    for (int more = static_cast<int>(std::min<int64_t>(2, std::ssize(rest))); more > 0; --more) {
      space.insert(space.begin(), {rest.back()});
      rest.pop_back();
    }
  const int64_t others = size_of(rest);
  rest.insert(rest.end(), wanted.begin(), wanted.end());
  std::vector<ViewDigits> axes{{}, rest};
  axes.insert(axes.end(), space.begin(), space.end());
  arrange(graph, tensor, axes, name);
  return others;
}

void bring_alone_to_channels(Recording& graph, TensorSymbol& tensor, int axis,
                             const std::string& name) {
  const Shape value = shape_of(graph, tensor);
  if (has_channels(graph.type(tensor.value)) && tensor.view.is_whole(axis, kChannels, value))
    return;
  if (axis == kChannels && is_flat(tensor.view, value)) {
    tensor.value = flatten(graph, tensor.value);
    tensor.view = CodeView::plain(tensor.view.shape());
    return;
  }
  const ViewDigits all = tensor.view.digits(), wanted = tensor.view[axis];
  std::vector<ViewDigits> axes = axes_left(all, wanted, kChannels, static_cast<int>(value.size()));
  axes.insert(axes.begin(), {{}, wanted});
  while (std::ssize(axes) > kMaxSpace + 2) {
    axes[2].insert(axes[2].end(), axes[3].begin(), axes[3].end());
    axes.erase(axes.begin() + 3);
  }
  arrange(graph, tensor, axes, name);
}

std::optional<ValueId> conformed(Recording& graph, const TensorSymbol& small,
                                 const TensorSymbol& large, const std::string& name) {
  const int extra = large.view.num_axes() - small.view.num_axes();
  if (extra < 0 || small.view.is_stretched() || large.view.is_stretched()) return std::nullopt;
  ViewDigits fine_large, fine_small;  // which digit of one goes along which of the other
  for (int axis = 0; axis < large.view.num_axes(); ++axis) {
    ViewDigits there = large.view[axis];
    ViewDigits here = axis < extra ? ViewDigits{} : small.view[axis - extra];
    if (!here.empty() && !refine_together(there, here)) return std::nullopt;
    if (here.empty()) here.resize(there.size());  // stretched
    fine_large.insert(fine_large.end(), there.begin(), there.end());
    fine_small.insert(fine_small.end(), here.begin(), here.end());
  }
  const auto partner = [&](const ViewDigit& digit) {
    return fine_small[std::find(fine_large.begin(), fine_large.end(), digit) - fine_large.begin()];
  };
  const Shape target = shape_of(graph, large), had = shape_of(graph, small);
  std::vector<ViewDigits> axes;
  for (int axis = 0; axis < std::ssize(target); ++axis) {
    ViewDigits& digits = axes.emplace_back();
    const ViewDigits along = digits_along(fine_large, axis);
    for (const ViewDigit& digit : along)
      if (const ViewDigit other = partner(digit); other.size > 1) digits.push_back(other);
    if (!digits.empty() && digits.size() != along.size()) return std::nullopt;
  }
  const CodeView wanted(axes);
  if (wanted.is_plain(had)) return small.value;
  if (!wanted.is_whole(0, kBatch, had)) return std::nullopt;
  TensorSymbol moved;
  moved.value = small.value;
  moved.view = wanted;
  return plain_value(graph, moved, name);
}

}  // namespace tessera
