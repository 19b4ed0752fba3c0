// Forward: statistics and their use. Each pass reads every number once.

#include "tessera/kernels/cuda/image_walk.cuh"
#include "tessera/kernels/cuda/launch_kernel.cuh"
#include "tessera/kernels/cuda/merge_parts.cuh"
#include "tessera/kernels/cuda/plane_numbers.cuh"

namespace tessera::cuda {
namespace {

constexpr int kAtOnce = 4;  // loads of a thread that are under way together

/// Distances from the thread's first number, summed in the computing type: the thread has few
/// enough pixels for that, and the parts of threads are merged in float64.
template <class T, int kWidth, int kAxes>
__global__ void __launch_bounds__(kThreads, 2) moments_kernel(MomentsCall call) {
  using Real = Computing<T>;
  const TilePart part(call.tiles);
  const T* x = part.of<const T>(call.x);
  Real first[kWidth] = {}, sum[kWidth] = {}, squares[kWidth] = {};
  int count = 0;
  for_pixels<kAtOnce, kAxes>(call.tiles, part, [&](const Place<kAxes>(&places)[kAtOnce], int n) {
    Packed<T, kWidth> loaded[kAtOnce];
#pragma unroll
    for (int p = 0; p < kAtOnce; ++p)
      if (p < n) loaded[p].load(x + places[p].offset(call.x));
#pragma unroll
    for (int p = 0; p < kAtOnce; ++p) {
      if (p >= n) break;
      Real values[kWidth];
      loaded[p].unpack(values);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        if (count == 0 && p == 0) first[i] = values[i];
        const Real distance = values[i] - first[i];
        sum[i] += distance;
        squares[i] = multiply_add(distance, distance, squares[i]);
      }
    }
    count += n;
  });
  PairOfSums sums[kWidth];
#pragma unroll
  for (int i = 0; i < kWidth; ++i) {
    const double distance = count == 0 ? 0 : static_cast<double>(sum[i]) / count;
    const double about_mean = static_cast<double>(squares[i]) - distance * distance * count;
    // A NaN stays one.
    sums[i] = {static_cast<double>(first[i]) + distance, about_mean < 0 ? 0 : about_mean};
  }
  write_parts<MergeMoments>(call.tiles, part, count, sums, call.parts);
}

/// A block for each cell of each row.
__global__ void __launch_bounds__(kMergingThreads) finish_moments_kernel(MomentsCall call) {
  const int64_t row = blockIdx.x / call.cells, cell = blockIdx.x % call.cells;
  const int64_t channels = call.tiles.channels / call.cells;
  int64_t count;
  const PairOfSums sum =
      merge_channels<MergeMoments>(call.tiles, call.parts, row, cell * channels, channels, count);
  if (threadIdx.x != 0) return;
  double* to = call.moments + row * call.row_stride + cell * call.cell_stride;
  to[0] = static_cast<double>(count);
  to[call.number_stride] = sum.first;
  to[2 * call.number_stride] = sum.second;
}

template <class T, int kWidth, int kAxes>
__global__ void __launch_bounds__(kThreads, 2) normalise_kernel(NormaliseCall call) {
  using Real = Computing<T>;
  const TilePart part(call.tiles);
  const BlockNumbers<Real, kWidth, 2> numbers(call.tiles, part,
                                              [&](int channel, Real(&of_channel)[2]) {
                                                const Affine exact(call.norm, part.row, channel);
                                                of_channel[0] = static_cast<Real>(exact.scale);
                                                of_channel[1] = static_cast<Real>(exact.shift);
                                              });
  Real scale[kWidth], shift[kWidth];
  numbers.read(part, 0, scale);
  numbers.read(part, 1, shift);
  const Real low = static_cast<Real>(call.norm.low), high = static_cast<Real>(call.norm.high);
  const bool adds = call.added.data != nullptr;
  const T *x = part.of<const T>(call.x), *added = part.of<const T>(call.added);
  T* y = part.of<T>(call.y);
  for_pixels<kAtOnce, kAxes>(call.tiles, part, [&](const Place<kAxes>(&places)[kAtOnce], int n) {
    Packed<T, kWidth> loaded[kAtOnce], others[kAtOnce];
#pragma unroll
    for (int p = 0; p < kAtOnce; ++p)
      if (p < n) loaded[p].load(x + places[p].offset(call.x));
#pragma unroll
    for (int p = 0; p < kAtOnce; ++p)
      if (p < n && adds) others[p].load(added + places[p].offset(call.added));
#pragma unroll
    for (int p = 0; p < kAtOnce; ++p) {
      if (p >= n) break;
      Real values[kWidth], other[kWidth] = {};
      loaded[p].unpack(values);
      if (adds) others[p].unpack(other);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        const Real value = multiply_add(values[i], scale[i], shift[i]) + other[i];
        const Real raised = value <= low ? low : value;  // a NaN passes
        values[i] = raised >= high ? high : raised;
      }
      store<T, kWidth>(y + places[p].offset(call.y), values);
    }
  });
}

}  // namespace

cudaError_t launch(const MomentsCall& call, cudaStream_t stream) {
  const cudaError_t error =
      choose_variant(call.type, call.tiles, [&](auto tag, auto width, auto axes) {
        using T = typename decltype(tag)::Type;
        return launch_kernel(moments_kernel<T, decltype(width)::value, decltype(axes)::value>,
                             call.tiles.blocks(), call.tiles.threads(), stream, call);
      });
  if (error != cudaSuccess) return error;
  return launch_kernel(finish_moments_kernel, call.tiles.rows * call.cells, kMergingThreads, stream,
                       call);
}

cudaError_t launch(const NormaliseCall& call, cudaStream_t stream) {
  return choose_variant(call.type, call.tiles, [&](auto tag, auto width, auto axes) {
    using T = typename decltype(tag)::Type;
    return launch_kernel(normalise_kernel<T, decltype(width)::value, decltype(axes)::value>,
                         call.tiles.blocks(), call.tiles.threads(), stream, call);
  });
}

}  // namespace tessera::cuda
