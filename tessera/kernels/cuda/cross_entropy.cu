// A thread has a pixel with all of its classes, which it reads once and keeps in registers.

#include "tessera/kernels/cuda/image_walk.cuh"
#include "tessera/kernels/cuda/launch_kernel.cuh"
#include "tessera/kernels/cuda/pixel_losses.h"
#include "tessera/kernels/cuda/strided_walk.cuh"
#include "tessera/kernels/cuda/sum_over_block.cuh"

namespace tessera::cuda {
namespace {

/// Numbers of one access.
template <class T, int kMost>
__host__ __device__ constexpr int pack_width() {
  return kMost * sizeof(T) <= 16 ? kMost : static_cast<int>(16 / sizeof(T));
}

/// How a pixel's numbers lie: up to kMost of them, or just as many in packs.
template <class T, int kMost, bool kIsPacked>
struct PixelNumbers {
  /// What is beyond the last class is -infinity.
  __device__ static void read(const T* from, int64_t stride, int classes,
                              Computing<T> (&numbers)[kMost]) {
    if constexpr (kIsPacked) {
      constexpr int kWidth = pack_width<T, kMost>();
#pragma unroll
      for (int first = 0; first < kMost; first += kWidth) {
        Packed<T, kWidth> pack;
        pack.load(from + first);
        Computing<T> some[kWidth];
        pack.unpack(some);
#pragma unroll
        for (int i = 0; i < kWidth; ++i) numbers[first + i] = some[i];
      }
    } else {
#pragma unroll
      for (int k = 0; k < kMost; ++k)
        numbers[k] = k < classes ? widen(from[k * stride]) : -static_cast<Computing<T>>(INFINITY);
    }
  }
  __device__ static void write(T* to, int64_t stride, int classes,
                               const Computing<T> (&numbers)[kMost]) {
    if constexpr (kIsPacked) {
      constexpr int kWidth = pack_width<T, kMost>();
#pragma unroll
      for (int first = 0; first < kMost; first += kWidth) {
        Computing<T> some[kWidth];
#pragma unroll
        for (int i = 0; i < kWidth; ++i) some[i] = numbers[first + i];
        store<T, kWidth>(to + first, some);
      }
    } else {
#pragma unroll
      for (int k = 0; k < kMost; ++k)
        if (k < classes) to[k * stride] = narrow<T>(numbers[k]);
    }
  }
};

/// A pixel: its logits, then their exponentials.
template <class T, int kMost, bool kIsPacked>
struct PixelExponentials {
  using Real = Computing<T>;
  Real numbers[kMost];
  Real max, sum = 0;

  __device__ PixelExponentials(const CrossEntropyCall& call, const T* logits) {
    PixelNumbers<T, kMost, kIsPacked>::read(logits, call.logit_stride, call.classes, numbers);
    max = numbers[0];
#pragma unroll
    for (int k = 1; k < kMost; ++k) max = numbers[k] > max ? numbers[k] : max;
  }
  __device__ void exponentiate() {
#pragma unroll
    for (int k = 0; k < kMost; ++k) sum += numbers[k] = exp(numbers[k] - max);
  }
};

/// Labels that are not legal do not count: they have been reported by those who counted labels.
__device__ bool counts(const CrossEntropyCall& call, int64_t label) {
  return label != call.ignore_index && label >= 0 && label < call.classes;
}

__device__ double weight_of(const CrossEntropyCall& call, int64_t label) {
  return call.weights.are_given ? call.weights.of_class[label] : 1.0;
}

/// hard w_t (-log q_t) + soft Σ w_k (-log q_k), where -log q_k = (max - x_k) + log(sum).
template <class T, int kMost, bool kIsPacked>
__device__ double term(const CrossEntropyCall& call, const WalkPlace& place, int64_t label) {
  using Real = Computing<T>;
  const T* logits = static_cast<const T*>(call.logits) + place.offsets[1];
  PixelExponentials<T, kMost, kIsPacked> pixel(call, logits);
  const Real hard = static_cast<Real>(call.hard * weight_of(call, label));
  const Real soft = static_cast<Real>(call.soft);
  Real distances = hard * (pixel.max - widen(logits[label * call.logit_stride]));
  if (call.soft != 0) {
#pragma unroll
    for (int k = 0; k < kMost; ++k)
      if (k < call.classes)
        distances += soft * static_cast<Real>(weight_of(call, k)) * (pixel.max - pixel.numbers[k]);
  }
  pixel.exponentiate();
  const Real total = hard + soft * static_cast<Real>(call.total_weight);
  return static_cast<double>(total * log(pixel.sum) + distances);
}

template <class T, int kMost, bool kIsPacked>
__global__ void __launch_bounds__(kThreads)
    cross_entropy_parts(const __grid_constant__ CrossEntropyCall call, double* parts) {
  const int64_t begin = blockIdx.x * kPixelsOfPart;
  const int64_t end = min(begin + kPixelsOfPart, call.pixels.count);
  double sum = 0;
  for (int64_t pixel = begin + threadIdx.x; pixel < end; pixel += kThreads) {
    const WalkPlace place(call.pixels, pixel);
    const int64_t label = call.labels[place.offsets[0]];
    if (counts(call, label)) sum += term<T, kMost, kIsPacked>(call, place, label);
  }
  sum = sum_over_block(sum);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(kThreads)
    merge_parts(const double* parts, int64_t count, double* sum) {
  const double all = sum_of(parts, count);
  if (threadIdx.x == 0) *sum = all;
}

/// factor (hard w_t (q_k - [k = t]) + soft (q_k Σ w - w_k)).
template <class T, int kMost, bool kIsPacked>
__global__ void __launch_bounds__(kThreads)
    cross_entropy_gradients(const __grid_constant__ CrossEntropyCall call, const double* factor) {
  using Real = Computing<T>;
  const int64_t number = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (number >= call.pixels.count) return;
  const WalkPlace place(call.pixels, number);
  const int64_t label = call.labels[place.offsets[0]];
  T* gradient = static_cast<T*>(call.gradient) + place.offsets[2];
  Real slopes[kMost];
  if (counts(call, label)) {
    PixelExponentials<T, kMost, kIsPacked> pixel(
        call, static_cast<const T*>(call.logits) + place.offsets[1]);
    pixel.exponentiate();
    const Real hard = static_cast<Real>(*factor * call.hard * weight_of(call, label));
    const Real soft = static_cast<Real>(*factor * call.soft);
    const Real share = (hard + soft * static_cast<Real>(call.total_weight)) / pixel.sum;
#pragma unroll
    for (int k = 0; k < kMost; ++k) {
      slopes[k] = share * pixel.numbers[k] - (k == label ? hard : Real(0));
      if (call.soft != 0 && k < call.classes)
        slopes[k] -= soft * static_cast<Real>(weight_of(call, k));
    }
  } else {
#pragma unroll
    for (int k = 0; k < kMost; ++k) slopes[k] = 0;
  }
  PixelNumbers<T, kMost, kIsPacked>::write(gradient, call.gradient_stride, call.classes, slopes);
}

/// run(TypeTag<T>, Number<most classes>, Number<is packed>)
template <class Run>
cudaError_t choose_pixels(const CrossEntropyCall& call, Run&& run) {
  const auto of_type = [&](auto tag) {
    if (call.is_packed) {
      if (call.classes == 2) return run(tag, Number<2>{}, Number<1>{});
      if (call.classes == 4) return run(tag, Number<4>{}, Number<1>{});
      if (call.classes == 8) return run(tag, Number<8>{}, Number<1>{});
      if (call.classes == 16) return run(tag, Number<16>{}, Number<1>{});
    }
    if (call.classes <= 8) return run(tag, Number<8>{}, Number<0>{});
    if (call.classes <= kMostWideClasses) return run(tag, Number<kMostWideClasses>{}, Number<0>{});
    // More numbers of 8 bytes do not fit the registers of a thread.
    if constexpr (sizeof(typename decltype(tag)::Type) == 8)
      return cudaErrorInvalidValue;
    else
      return run(tag, Number<kMostClasses>{}, Number<0>{});
  };
  if (call.type == NumberType::kFloat64) return of_type(TypeTag<double>{});
  if (call.type == NumberType::kFloat32) return of_type(TypeTag<float>{});
  return of_type(TypeTag<__nv_bfloat16>{});
}

}  // namespace

cudaError_t sum_cross_entropy(const CrossEntropyCall& call, double* parts, double* sum,
                              cudaStream_t stream) {
  const int64_t count = parts_of_pixels(call.pixels.count);
  const cudaError_t error = choose_pixels(call, [&](auto tag, auto most, auto packed) {
    return launch_kernel(cross_entropy_parts<typename decltype(tag)::Type, decltype(most)::value,
                                             decltype(packed)::value != 0>,
                         count, kThreads, stream, call, parts);
  });
  if (error != cudaSuccess) return error;
  const double* const found = parts;
  return launch_kernel(merge_parts, int64_t{1}, kThreads, stream, found, count, sum);
}

cudaError_t find_cross_entropy_gradient(const CrossEntropyCall& call, const double* factor,
                                        cudaStream_t stream) {
  const int64_t blocks = (call.pixels.count + kThreads - 1) / kThreads;
  return choose_pixels(call, [&](auto tag, auto most, auto packed) {
    return launch_kernel(
        cross_entropy_gradients<typename decltype(tag)::Type, decltype(most)::value,
                                decltype(packed)::value != 0>,
        blocks, kThreads, stream, call, factor);
  });
}

}  // namespace tessera::cuda
