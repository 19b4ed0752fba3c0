#include "tessera/kernels/cuda/pixel_binding.h"
#include "tessera/kernels/cuda/pool_binding.h"

namespace tessera {
namespace cuda {
namespace {

/// `of_threads`: the image whose pixels the threads have.
std::optional<AveragePoolCall> bind(const PoolPiece& piece, const PoolDivisor& divisor,
                                    const at::Tensor& of_threads, const at::Tensor& x,
                                    const at::Tensor& y) {
  const at::Tensor& other = of_threads.is_same(x) ? y : x;
  const std::optional<PixelThreads> threads = pixel_threads(of_threads, other, {});
  if (!threads) return std::nullopt;
  AveragePoolCall call{.threads = *threads,
                       .axes = {},
                       .x = volume_of(x),
                       .y = volume_of(y),
                       .counts_padding = divisor.count_include_pad,
                       .divisor = static_cast<double>(divisor.override_)};
  for (int axis = 0; axis < 3; ++axis) call.axes[axis] = window_axis(piece[axis]);
  return call;
}

void pool_averages(const PoolPiece& piece, const PoolDivisor& divisor, const at::Tensor& x,
                   const at::Tensor& y) {
  if (y.numel() == 0) return;
  const std::optional<AveragePoolCall> call = bind(piece, divisor, y, x, y);
  if (!call) return AveragePoolKernels::kAten.pool_averages(piece, divisor, x, y);
  launch_beside(y, launch_averages, *call);
}

void pool_averages_gradient(const PoolPiece& piece, const PoolDivisor& divisor,
                            const at::Tensor& grad_y, const at::Tensor& grad_x) {
  if (grad_x.numel() == 0) return;
  const std::optional<AveragePoolCall> call = bind(piece, divisor, grad_x, grad_x, grad_y);
  if (!call)
    return AveragePoolKernels::kAten.pool_averages_gradient(piece, divisor, grad_y, grad_x);
  launch_beside(grad_x, launch_averages_gather, *call);
}

constexpr AveragePoolKernels kTable{.pool_averages = pool_averages,
                                    .pool_averages_gradient = pool_averages_gradient};

}  // namespace
}  // namespace cuda

const AveragePoolKernels* const AveragePoolKernels::kCuda = &cuda::kTable;

}  // namespace tessera
