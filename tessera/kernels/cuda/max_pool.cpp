#include "tessera/base/error.h"
#include "tessera/kernels/cuda/pixel_binding.h"
#include "tessera/kernels/cuda/pool_binding.h"

namespace tessera {
namespace cuda {
namespace {

/// `of_threads`: the image whose pixels the threads have. No other table could read the choices.
MaxPoolCall bind(const PoolPiece& piece, const at::Tensor& of_threads, const at::Tensor& x,
                 const at::Tensor& y, const at::Tensor& choices) {
  const at::Tensor& other = of_threads.is_same(x) ? y : x;
  const std::optional<PixelThreads> threads = pixel_threads(of_threads, other, choices);
  TESSERA_CHECK(threads, "no kernel pools {} numbers of type {}", x.numel(),
                c10::toString(x.scalar_type()));
  MaxPoolCall call{.threads = *threads, .axes = {}, .x = volume_of(x), .y = volume_of(y)};
  for (int axis = 0; axis < 3; ++axis) call.axes[axis] = window_axis(piece[axis]);
  call.choices = choices.data_ptr();
  call.has_wide_choices = choices.scalar_type() == at::kInt;
  return call;
}

void pool_maxima(const PoolPiece& piece, const at::Tensor& x, const at::Tensor& y,
                 const at::Tensor& choices) {
  if (y.numel() > 0) launch_beside(y, launch_maxima, bind(piece, y, x, y, choices));
}

void pool_maxima_gradient(const PoolPiece& piece, const at::Tensor& grad_y,
                          const at::Tensor& choices, const at::Tensor& grad_x) {
  if (grad_x.numel() == 0) return;
  if (windows_tile(piece))
    launch_beside(grad_y, launch_maxima_scatter, bind(piece, grad_y, grad_x, grad_y, choices));
  else
    launch_beside(grad_x, launch_maxima_gather, bind(piece, grad_x, grad_x, grad_y, choices));
}

constexpr MaxPoolKernels kTable{.pool_maxima = pool_maxima,
                                .pool_maxima_gradient = pool_maxima_gradient};

}  // namespace
}  // namespace cuda

const MaxPoolKernels* const MaxPoolKernels::kCuda = &cuda::kTable;

}  // namespace tessera
