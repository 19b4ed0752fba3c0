#include "tessera/import/weight_form.h"

#include <algorithm>

namespace tessera {

at::Tensor WeightForm::moved(const at::Tensor& weight) const {
  return weight.reshape(sizes)
      .permute(moved_digits())
      .reshape(with_ones())
      .expand(repeated)
      .reshape(shape)
      .contiguous();
}

ExpressionPointer WeightForm::moved(const ExpressionPointer& weight) const {
  ExpressionPointer digits = computed(WeightFunction::kReshape, {weight}, sizes);
  digits = computed(WeightFunction::kPermute, {digits}, moved_digits());
  digits = computed(WeightFunction::kReshape, {digits}, with_ones());
  digits = computed(WeightFunction::kExpand, {digits}, repeated);
  return computed(WeightFunction::kReshape, {digits}, shape);
}

std::vector<int64_t> WeightForm::moved_digits() const {
  std::vector<int64_t> dims;
  for (int64_t index : order)
    if (index >= 0) dims.push_back(index);
  return dims;
}

Shape WeightForm::with_ones() const {
  Shape ones = repeated;
  for (size_t place = 0; place < order.size(); ++place)
    if (order[place] < 0) ones[place] = 1;
  return ones;
}

std::optional<WeightForm> form_of_weight(const Shape& weight, const CodeView& view,
                                         const Shape& value) {
  const int extra = view.num_axes() - static_cast<int>(weight.size());
  if (extra < 0) return std::nullopt;
  WeightForm form;
  ViewDigits present;  // in the code's order
  for (int axis = extra; axis < view.num_axes(); ++axis) {
    const int64_t size = weight[axis - extra];
    if (size == 1) continue;
    if (size != size_of(view[axis])) return std::nullopt;
    present.insert(present.end(), view[axis].begin(), view[axis].end());
  }
  for (const ViewDigit& digit : present) {
    if (digit.axis <= 0) return std::nullopt;
    form.sizes.push_back(digit.size);
  }
  const ViewDigits all = view.digits();
  int64_t last = -1;
  for (int axis = 0; axis < std::ssize(value); ++axis) {
    const ViewDigits along = digits_along(all, axis);
    std::vector<int64_t> indices;
    for (const ViewDigit& digit : along) {
      const auto found = std::find(present.begin(), present.end(), digit);
      indices.push_back(found == present.end() ? -1 : found - present.begin());
    }
    const auto num_repeated = std::count(indices.begin(), indices.end(), -1);
    if (num_repeated == std::ssize(indices)) {
      form.shape.push_back(1);
      continue;
    }
    form.shape.push_back(value[axis]);
    form.moves = form.moves || num_repeated > 0;
    for (size_t i = 0; i < indices.size(); ++i) {
      form.order.push_back(indices[i]);
      form.repeated.push_back(along[i].size);
      if (indices[i] < 0) continue;
      form.moves = form.moves || indices[i] < last;
      last = indices[i];
    }
  }
  if (!form.moves && view.is_plain(value)) form.shape = weight;
  return form;
}

}  // namespace tessera
