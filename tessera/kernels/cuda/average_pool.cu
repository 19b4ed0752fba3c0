// Averages of windows, summed in the computing type in scan order, and their gradients.

#include "tessera/kernels/cuda/pool_windows.cuh"

namespace tessera::cuda {
namespace {

template <class Real>
__device__ Real divisor_of(const AveragePoolCall& call, const int (&output)[3]) {
  if (call.divisor != 0) return static_cast<Real>(call.divisor);
  Real elements = 1;
#pragma unroll
  for (int i = 0; i < 3; ++i) {
    const WindowAxis& axis = call.axes[i];
    if (call.counts_padding) {
      const int first = axis.first + output[i] * axis.stride;
      elements *= static_cast<Real>(min(first + axis.kernel, axis.padded_end) - first);
    } else {
      const Span taps = taps_inside(axis, output[i]);
      elements *= static_cast<Real>(taps.end - taps.begin);
    }
  }
  return elements;
}

template <class T, int kWidth>
__global__ void __launch_bounds__(kThreads) averages_kernel(AveragePoolCall call) {
  using Real = Computing<T>;
  const PixelPlace place(call.threads);
  if (place.is_idle) return;
  const T* x = place.base<const T>(call.x);
  Real sums[kWidth] = {};
  for_taps(call.axes, place.at, call.x, [&](int64_t offset, int) {
    Packed<T, kWidth> loaded;
    loaded.load(x + offset);
    Real values[kWidth];
    loaded.unpack(values);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) sums[i] += values[i];
  });
  const Real divisor = divisor_of<Real>(call, place.at);
#pragma unroll
  for (int i = 0; i < kWidth; ++i) sums[i] /= divisor;
  store<T, kWidth>(place.own<T>(call.y), sums);
}

template <class T, int kWidth>
__global__ void __launch_bounds__(kThreads) averages_gather_kernel(AveragePoolCall call) {
  using Real = Computing<T>;
  const PixelPlace place(call.threads);
  if (place.is_idle) return;
  const T* grad_y = place.base<const T>(call.y);
  Real sums[kWidth] = {};
  for_outputs(call.axes, place.at, [&](const int(&output)[3], int) {
    Packed<T, kWidth> loaded;
    loaded.load(grad_y + offset_of(call.y, output));
    Real gradients[kWidth];
    loaded.unpack(gradients);
    const Real divisor = divisor_of<Real>(call, output);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) sums[i] += gradients[i] / divisor;
  });
  store<T, kWidth>(place.own<T>(call.x), sums);
}

}  // namespace

cudaError_t launch_averages(const AveragePoolCall& call, cudaStream_t stream) {
  return choose_width(call.threads, [&](auto tag, auto width) {
    using T = typename decltype(tag)::Type;
    return launch_kernel(averages_kernel<T, decltype(width)::value>, call.threads.blocks(),
                         call.threads.threads(), stream, call);
  });
}

cudaError_t launch_averages_gather(const AveragePoolCall& call, cudaStream_t stream) {
  return choose_width(call.threads, [&](auto tag, auto width) {
    using T = typename decltype(tag)::Type;
    return launch_kernel(averages_gather_kernel<T, decltype(width)::value>, call.threads.blocks(),
                         call.threads.threads(), stream, call);
  });
}

}  // namespace tessera::cuda
