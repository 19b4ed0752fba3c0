#pragma once
// A weight or constant that the code joins with a tensor, in the form that the tensor's value
// needs: the code's axes are digits of the value's axes (view.h), in whatever order.

#include <ATen/ATen.h>

#include <optional>

#include "tessera/import/view.h"
#include "tessera/import/weight_expression.h"

namespace tessera {

struct WeightForm {
  Shape shape;  // broadcasts to the value
  /// Whether its elements lie in another order than the code's, or are repeated.
  bool moves = false;
  /// The elements of a weight of the code's shape, as `shape`.
  at::Tensor moved(const at::Tensor& weight) const;
  ExpressionPointer moved(const ExpressionPointer& weight) const;

  // For moved(): what the code's order is made of, and what the value's is.
  std::vector<int64_t> sizes;     // of the digits, as the code has them
  std::vector<int64_t> order;     // the value's digits: an index of `sizes`, or -1: repeated
  std::vector<int64_t> repeated;  // sizes of the value's digits

 private:
  std::vector<int64_t> moved_digits() const;
  Shape with_ones() const;
};

/// None where the weight's axes, aligned at the right, are neither 1 nor those of the view, or
/// where it has an element for each sample.
std::optional<WeightForm> form_of_weight(const Shape& weight, const CodeView& view,
                                         const Shape& value);

}  // namespace tessera
