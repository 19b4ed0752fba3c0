#pragma once
// The class with the largest score, for pixels of a row.

#include <ATen/ATen.h>

#include <cstdint>

namespace tessera {

constexpr int64_t kClassifiedAtATime = 256;  // so that their maxima stay in the first-level cache

/// Where row `row` of a view begins, in elements: `sizes` and `strides` without the last axis.
inline int64_t row_begin(int64_t row, at::IntArrayRef sizes, at::IntArrayRef strides) {
  int64_t offset = 0;
  for (int axis = static_cast<int>(sizes.size()) - 2; axis >= 0; --axis) {
    offset += row % sizes[axis] * strides[axis];
    row /= sizes[axis];
  }
  return offset;
}

/// For `size` pixels from `logits` on, at most kClassifiedAtATime.
template <class T>
void classify(const T* logits, int64_t num_classes, int64_t class_stride, int64_t pixel_stride,
              int64_t size, int64_t* prediction) {
  T best[kClassifiedAtATime];
  for (int64_t p = 0; p < size; ++p) {
    best[p] = logits[p * pixel_stride];
    prediction[p] = 0;
  }
  for (int64_t k = 1; k < num_classes; ++k) {
    const T* image = logits + k * class_stride;
    for (int64_t p = 0; p < size; ++p) {
      const T logit = image[p * pixel_stride];
      // Not `>` alone: NaN beats every number, and nothing beats NaN.
      const bool wins = !(logit <= best[p]) && best[p] == best[p];
      best[p] = wins ? logit : best[p];
      prediction[p] = wins ? k : prediction[p];
    }
  }
}

}  // namespace tessera
