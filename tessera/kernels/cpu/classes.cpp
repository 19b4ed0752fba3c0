#include "tessera/kernels/classes.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include <algorithm>

#include "tessera/kernels/cpu/classify.h"

namespace tessera {

namespace cpu {

at::Tensor classes_with_largest_score(const at::Tensor& scores) {
  constexpr int64_t kPixelsPerTask = 1 << 14;
  if (scores.dim() < 3) return scores.argmax(1);
  std::vector<int64_t> sizes = scores.sizes().vec(), strides = scores.strides().vec();
  sizes.erase(sizes.begin() + 1);
  strides.erase(strides.begin() + 1);
  at::Tensor classes = at::empty(sizes, scores.options().dtype(at::kLong));
  if (classes.numel() == 0) return classes;
  const int64_t row_size = sizes.back();
  AT_DISPATCH_FLOATING_TYPES(scores.scalar_type(), "classes_with_largest_score", [&] {
    const scalar_t* const data = scores.data_ptr<scalar_t>();
    int64_t* const result = classes.data_ptr<int64_t>();
    const auto classify_rows = [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const scalar_t* const row_scores = data + row_begin(row, sizes, strides);
        for (int64_t column = 0; column < row_size; column += kClassifiedAtATime)
          classify(row_scores + column * strides.back(), scores.size(1), scores.stride(1),
                   strides.back(), std::min(kClassifiedAtATime, row_size - column),
                   result + row * row_size + column);
      }
    };
    at::parallel_for(0, classes.numel() / row_size, std::max<int64_t>(1, kPixelsPerTask / row_size),
                     classify_rows);
  });
  return classes;
}

}  // namespace cpu

const ClassKernels ClassKernels::kCpu{.classes_with_largest_score =
                                          cpu::classes_with_largest_score};

}  // namespace tessera
