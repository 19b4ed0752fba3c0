// Backward: what the gradients sum up to, and the gradients.

#include "tessera/kernels/cuda/image_walk.cuh"
#include "tessera/kernels/cuda/launch_kernel.cuh"
#include "tessera/kernels/cuda/merge_parts.cuh"
#include "tessera/kernels/cuda/plane_numbers.cuh"

namespace tessera::cuda {
namespace {

/// Pixels whose loads are under way together, of three images each.
template <int kWidth>
constexpr int kAtOnce = kWidth == 1 ? 4 : 2;

/// What backward reads at some pixels.
template <class T, int kWidth, int kAxes>
struct Reads {
  static constexpr int kPixels = kAtOnce<kWidth>;
  Packed<T, kWidth> x[kPixels], y[kPixels], grad_y[kPixels];

  template <class Call>
  __device__ Reads(const Call& call, const TilePart& part, const Place<kAxes> (&places)[kPixels],
                   int count) {
    load(call.x, part, places, count, x);
    load(call.grad_y, part, places, count, grad_y);
    if (call.y.data != nullptr) load(call.y, part, places, count, y);
  }
  static __device__ void load(const Image& image, const TilePart& part,
                              const Place<kAxes> (&places)[kPixels], int count,
                              Packed<T, kWidth> (&to)[kPixels]) {
    const T* from = part.of<const T>(image);
#pragma unroll
    for (int p = 0; p < kPixels; ++p)
      if (p < count) to[p].load(from + places[p].offset(image));
  }
};

template <class T, int kWidth, int kAxes>
__global__ void __launch_bounds__(kThreads, 2) gradient_sums_kernel(GradientSumsCall call) {
  using Real = Computing<T>;
  constexpr int kPixels = kAtOnce<kWidth>;
  const TilePart part(call.tiles);
  const BlockNumbers<Real, kWidth, 3> numbers(
      call.tiles, part, [&](int channel, Real(&of_channel)[3]) {
        const Affine exact(call.norm, part.row, channel);
        of_channel[0] = static_cast<Real>(exact.scale);
        of_channel[1] = static_cast<Real>(exact.shift);
        of_channel[2] = static_cast<Real>(
            number_of(call.norm.mean, part.row, channel / call.norm.channels_of_cell));
      });
  Real scale[kWidth], shift[kWidth], mean[kWidth], sum[kWidth] = {}, weighted[kWidth] = {};
  numbers.read(part, 0, scale);
  numbers.read(part, 1, shift);
  numbers.read(part, 2, mean);
  const Real low = static_cast<Real>(call.norm.low), high = static_cast<Real>(call.norm.high);
  for_pixels<kPixels, kAxes>(call.tiles, part, [&](const Place<kAxes>(&places)[kPixels], int n) {
    const Reads<T, kWidth, kAxes> reads(call, part, places, n);
#pragma unroll
    for (int p = 0; p < kPixels; ++p) {
      if (p >= n) break;
      Real x[kWidth], y[kWidth], dy[kWidth];
      reads.x[p].unpack(x);
      reads.grad_y[p].unpack(dy);
      if (call.y.data != nullptr) reads.y[p].unpack(y);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        const Real value = call.y.data != nullptr ? y[i] : multiply_add(x[i], scale[i], shift[i]);
        const Real gradient = gradient_before(value, dy[i], low, high);
        sum[i] += gradient;
        weighted[i] = multiply_add(gradient, x[i] - mean[i], weighted[i]);
      }
    }
  });
  PairOfSums sums[kWidth];
#pragma unroll
  for (int i = 0; i < kWidth; ++i)
    sums[i] = {static_cast<double>(sum[i]), static_cast<double>(weighted[i])};
  write_parts<MergeSums>(call.tiles, part, 0, sums, call.parts);
}

/// A block for each channel of each row. Distances were taken from the mean as the kernel above
/// rounded it.
template <class Real>
__global__ void __launch_bounds__(kMergingThreads) finish_sums_kernel(GradientSumsCall call) {
  const int64_t row = blockIdx.x / call.tiles.channels, channel = blockIdx.x % call.tiles.channels;
  int64_t count;
  const PairOfSums sum = merge_channels<MergeSums>(call.tiles, call.parts, row, channel, 1, count);
  if (threadIdx.x != 0) return;
  const int64_t cell = channel / call.norm.channels_of_cell;
  const double mean = number_of(call.norm.mean, row, cell);
  const double rounding = static_cast<double>(static_cast<Real>(mean)) - mean;
  call.sum_dy.data[row * call.sum_dy.row_stride + channel * call.sum_dy.cell_stride] = sum.first;
  call.sum_dy_xhat
      .data[row * call.sum_dy_xhat.row_stride + channel * call.sum_dy_xhat.cell_stride] =
      (sum.second + rounding * sum.first) * number_of(call.norm.inverse_std, row, cell);
}

/// dx = scale * dy + (slope * (x - mean) + offset)
enum Kind { kScale, kShift, kMean, kSlope, kOffset, kKinds };

template <class Real>
__device__ void gradient_numbers(const NormGradientCall& call, int64_t row, int channel,
                                 Real (&numbers)[kKinds]) {
  const int cell = channel / call.norm.channels_of_cell;
  const Affine exact(call.norm, row, channel);
  const double inverse_std = number_of(call.norm.inverse_std, row, cell);
  numbers[kScale] = static_cast<Real>(exact.scale);
  numbers[kShift] = static_cast<Real>(exact.shift);
  numbers[kMean] = static_cast<Real>(number_of(call.norm.mean, row, cell));
  numbers[kSlope] = numbers[kOffset] = 0;
  if (call.mean_dxhat.data == nullptr) return;
  numbers[kSlope] =
      static_cast<Real>(-inverse_std * inverse_std * number_of(call.mean_dxhat_xhat, row, cell));
  numbers[kOffset] = static_cast<Real>(-inverse_std * number_of(call.mean_dxhat, row, cell));
}

template <class T, int kWidth, int kAxes>
__global__ void __launch_bounds__(kThreads, 2) norm_gradient_kernel(NormGradientCall call) {
  using Real = Computing<T>;
  constexpr int kPixels = kAtOnce<kWidth>;
  const TilePart part(call.tiles);
  const BlockNumbers<Real, kWidth, kKinds> numbers(
      call.tiles, part, [&](int channel, Real(&of_channel)[kKinds]) {
        gradient_numbers(call, part.row, channel, of_channel);
      });
  Real scale[kWidth], shift[kWidth], slope[kWidth], offset[kWidth];
  numbers.read(part, kScale, scale);
  numbers.read(part, kShift, shift);
  numbers.read(part, kSlope, slope);
  numbers.read(part, kOffset, offset);
  const Real low = static_cast<Real>(call.norm.low), high = static_cast<Real>(call.norm.high);
  const bool adds = call.grad_added.data != nullptr, slopes = call.mean_dxhat.data != nullptr;
  for_pixels<kPixels, kAxes>(call.tiles, part, [&](const Place<kAxes>(&places)[kPixels], int n) {
    const Reads<T, kWidth, kAxes> reads(call, part, places, n);
#pragma unroll
    for (int p = 0; p < kPixels; ++p) {
      if (p >= n) break;
      Real x[kWidth], y[kWidth], dy[kWidth];
      reads.x[p].unpack(x);
      reads.grad_y[p].unpack(dy);
      if (call.y.data != nullptr) reads.y[p].unpack(y);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        const Real value = call.y.data != nullptr ? y[i] : multiply_add(x[i], scale[i], shift[i]);
        dy[i] = gradient_before(value, dy[i], low, high);
      }
      if (adds)
        store<T, kWidth>(part.of<T>(call.grad_added) + places[p].offset(call.grad_added), dy);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        dy[i] *= scale[i];
        // An infinite x has a gradient where the statistics do not depend on it.
        if (slopes) dy[i] += multiply_add(slope[i], x[i] - numbers.of(part, i, kMean), offset[i]);
      }
      store<T, kWidth>(part.of<T>(call.grad_x) + places[p].offset(call.grad_x), dy);
    }
  });
}

}  // namespace

cudaError_t launch(const GradientSumsCall& call, cudaStream_t stream) {
  return choose_variant(call.type, call.tiles, [&](auto tag, auto width, auto axes) {
    using T = typename decltype(tag)::Type;
    const cudaError_t error =
        launch_kernel(gradient_sums_kernel<T, decltype(width)::value, decltype(axes)::value>,
                      call.tiles.blocks(), call.tiles.threads(), stream, call);
    if (error != cudaSuccess) return error;
    return launch_kernel(finish_sums_kernel<Computing<T>>, call.tiles.rows * call.tiles.channels,
                         kMergingThreads, stream, call);
  });
}

cudaError_t launch(const NormGradientCall& call, cudaStream_t stream) {
  return choose_variant(call.type, call.tiles, [&](auto tag, auto width, auto axes) {
    using T = typename decltype(tag)::Type;
    return launch_kernel(norm_gradient_kernel<T, decltype(width)::value, decltype(axes)::value>,
                         call.tiles.blocks(), call.tiles.threads(), stream, call);
  });
}

}  // namespace tessera::cuda
