#include "tessera/kernels/space_sum.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "tessera/kernels/cpu/image_view.h"
#include "tessera/kernels/cpu/row_sum.h"

namespace tessera {
namespace {

/// One row where rows follow each other without gaps.
template <class T>
double sum_plane(const ImageView<const T>& x, int64_t plane) {
  const auto& sizes = x.sizes;
  const auto& strides = x.strides;
  const int64_t step = strides[4];
  const bool joined = (sizes[3] == 1 || strides[3] == sizes[4] * step) &&
                      (sizes[2] == 1 || strides[2] == sizes[3] * sizes[4] * step);
  if (joined) return sum_row(x.plane(plane), sizes[2] * sizes[3] * sizes[4], step);
  double sum = 0;
  for (int64_t d = 0; d < sizes[2]; ++d)
    for (int64_t h = 0; h < sizes[3]; ++h)
      sum += sum_row(x.plane(plane) + d * strides[2] + h * strides[3], sizes[4], step);
  return sum;
}

template <class T>
void sum_planes_of(const at::Tensor& image, double scale, const at::Tensor& sums) {
  const ImageView<const T> x(with_five_axes(image));
  auto y = sums.accessor<Number<T>, 2>();
  const int64_t channels = x.sizes[1], pixels = x.sizes[2] * x.sizes[3] * x.sizes[4];
  const int64_t grain = std::max<int64_t>(1, at::internal::GRAIN_SIZE / pixels);
  at::parallel_for(0, x.num_planes(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      y[i / channels][i % channels] = static_cast<Number<T>>(scale * sum_plane(x, i));
  });
}

}  // namespace

namespace cpu {

void sum_space(const at::Tensor& x, double scale, const at::Tensor& sums) {
  on_numbers_of(x, [&]<class T>() { sum_planes_of<T>(x, scale, sums); });
}

}  // namespace cpu

const SpaceSumKernels SpaceSumKernels::kCpu{.sum_space = cpu::sum_space};

}  // namespace tessera
