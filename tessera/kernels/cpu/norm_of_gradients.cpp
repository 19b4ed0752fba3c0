#include "tessera/kernels/optimise.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tessera/base/error.h"

namespace tessera {
namespace {

constexpr int64_t kBlock = 4096;  // elements: a part of the sum, always the same

/// Sums in eight parts, which the compiler may keep in vector registers without reordering
/// anything.
template <class T>
double block_sum_of_squares(const T* elements, int64_t count) {
  constexpr int64_t kLanes = 8;
  double lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const double element = static_cast<double>(elements[i + lane]);
      lanes[lane] += element * element;
    }
  for (int64_t lane = 0; i < count; ++i, ++lane) {
    const double element = static_cast<double>(elements[i]);
    lanes[lane] += element * element;
  }
  return std::accumulate(lanes, lanes + kLanes, 0.0);
}

}  // namespace

namespace cpu {

void sum_of_squares(const at::Tensor& gradient, const at::Tensor& sum) {
  TESSERA_CHECK(gradient.device().is_cpu(), "gradient on {}", gradient.device().str());
  const at::Tensor dense = gradient.contiguous();
  const int64_t count = dense.numel();
  std::vector<double> blocks((count + kBlock - 1) / kBlock);
  AT_DISPATCH_FLOATING_TYPES(dense.scalar_type(), "gradient_norm", [&] {
    const scalar_t* elements = dense.data_ptr<scalar_t>();
    at::parallel_for(0, static_cast<int64_t>(blocks.size()), 8, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block)
        blocks[block] = block_sum_of_squares(elements + block * kBlock,
                                             std::min(kBlock, count - block * kBlock));
    });
  });
  *sum.data_ptr<double>() = std::accumulate(blocks.begin(), blocks.end(), 0.0);
}

void clip_gradients(const at::Tensor& squares, double max_norm, const at::Tensor& norm,
                    const std::vector<at::Tensor>& buckets) {
  const double* first = squares.data_ptr<double>();
  const double found = std::sqrt(std::accumulate(first, first + squares.numel(), 0.0));
  *norm.data_ptr<double>() = found;
  const double factor = max_norm / (found + 1e-6);
  if (max_norm <= 0 || !std::isfinite(found) || factor >= 1) return;
  for (const at::Tensor& bucket : buckets) bucket.mul_(factor);
}

}  // namespace cpu

const NormOfGradientsKernels NormOfGradientsKernels::kCpu{.sum_of_squares = cpu::sum_of_squares,
                                                          .clip_gradients = cpu::clip_gradients};

}  // namespace tessera
