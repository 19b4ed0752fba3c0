// Maxima of windows and where their gradients go. Choices lie beside each other as the channels of
// a pixel do, so that they move as these do.

#include "tessera/kernels/cuda/pool_windows.cuh"

namespace tessera::cuda {
namespace {

/// Indices of taps for the thread's channels at one output.
template <class Code, int kWidth>
struct alignas(sizeof(Code) * kWidth <= 16 ? sizeof(Code) * kWidth : 16) Codes {
  Code at[kWidth];
};

template <class Code, int kWidth>
__device__ Codes<Code, kWidth>& codes_of(const MaxPoolCall& call, int64_t pixel, int channel) {
  Code* first = static_cast<Code*>(call.choices) + pixel * call.threads.channels + channel;
  return *reinterpret_cast<Codes<Code, kWidth>*>(first);
}

/// The first of equal values wins, and a NaN always does.
template <class T, int kWidth>
struct Best {
  Computing<T> values[kWidth] = {};
  int choices[kWidth];

  __device__ Best() {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) choices[i] = -1;
  }
  __device__ void take(const Packed<T, kWidth>& loaded, int index) {
    Computing<T> others[kWidth];
    loaded.unpack(others);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const bool wins = choices[i] < 0 || others[i] > values[i] || others[i] != others[i];
      values[i] = wins ? others[i] : values[i];
      choices[i] = wins ? index : choices[i];
    }
  }
  template <class Code>
  __device__ void put(const MaxPoolCall& call, const PixelPlace& place) const {
    store<T, kWidth>(place.own<T>(call.y), values);
    Codes<Code, kWidth> codes;
#pragma unroll
    for (int i = 0; i < kWidth; ++i) codes.at[i] = static_cast<Code>(choices[i]);
    codes_of<Code, kWidth>(call, place.pixel, place.channel) = codes;
  }
};

template <class T, int kWidth, class Code>
__global__ void __launch_bounds__(kThreads) maxima_kernel(MaxPoolCall call) {
  const PixelPlace place(call.threads);
  if (place.is_idle) return;
  const T* x = place.base<const T>(call.x);
  Best<T, kWidth> best;
  for_taps(call.axes, place.at, call.x, [&](int64_t offset, int index) {
    Packed<T, kWidth> loaded;
    loaded.load(x + offset);
    best.take(loaded, index);
  });
  best.template put<Code>(call, place);
}

/// Windows of kDepth x kSide x kSide neighbours, all of whose loads are under way together.
template <class T, int kWidth, int kDepth, int kSide>
__global__ void __launch_bounds__(kThreads) small_maxima_kernel(MaxPoolCall call) {
  constexpr int kTaps = kDepth * kSide * kSide;
  const PixelPlace place(call.threads);
  if (place.is_idle) return;
  int first[3];
#pragma unroll
  for (int axis = 0; axis < 3; ++axis)
    first[axis] = call.axes[axis].first + place.at[axis] * call.axes[axis].stride;
  const T* x = place.base<const T>(call.x);
  const auto input_of = [&](int tap, int axis) {
    const int of_axis[3] = {tap / (kSide * kSide), tap / kSide % kSide, tap % kSide};
    return first[axis] + of_axis[axis];
  };
  bool is_inside[kTaps];
  Packed<T, kWidth> loaded[kTaps];
#pragma unroll
  for (int tap = 0; tap < kTaps; ++tap) {
    is_inside[tap] = true;
    int64_t offset = 0;
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) {
      const int input = input_of(tap, axis);
      is_inside[tap] &= input >= 0 && input < call.axes[axis].inputs;
      offset += input * call.x.axes[axis];
    }
    if (is_inside[tap]) loaded[tap].load(x + offset);
  }
  Best<T, kWidth> best;
#pragma unroll
  for (int tap = 0; tap < kTaps; ++tap)
    if (is_inside[tap]) best.take(loaded[tap], tap);
  best.template put<uint8_t>(call, place);
}

template <class T, int kWidth, class Code>
__global__ void __launch_bounds__(kThreads) maxima_scatter_kernel(MaxPoolCall call) {
  const PixelPlace place(call.threads);
  if (place.is_idle) return;
  T* grad_x = place.base<T>(call.x);
  Packed<T, kWidth> loaded;
  loaded.load(place.own<const T>(call.y));
  const Codes<Code, kWidth> codes = codes_of<Code, kWidth>(call, place.pixel, place.channel);
  Computing<T> gradients[kWidth];
  loaded.unpack(gradients);
  for_taps(call.axes, place.at, call.x, [&](int64_t offset, int index) {
    Computing<T> chosen[kWidth];
#pragma unroll
    for (int i = 0; i < kWidth; ++i)
      chosen[i] = static_cast<int>(codes.at[i]) == index ? gradients[i] : Computing<T>(0);
    store<T, kWidth>(grad_x + offset, chosen);
  });
}

template <class T, int kWidth, class Code>
__global__ void __launch_bounds__(kThreads) maxima_gather_kernel(MaxPoolCall call) {
  const PixelPlace place(call.threads);
  if (place.is_idle) return;
  const T* grad_y = place.base<const T>(call.y);
  Computing<T> sums[kWidth] = {};
  for_outputs(call.axes, place.at, [&](const int(&output)[3], int index) {
    const int64_t row = (place.sample * call.axes[0].outputs + output[0]) * call.axes[1].outputs;
    const int64_t pixel = (row + output[1]) * call.axes[2].outputs + output[2];
    const Codes<Code, kWidth> codes = codes_of<Code, kWidth>(call, pixel, place.channel);
    Packed<T, kWidth> loaded;
    loaded.load(grad_y + offset_of(call.y, output));
    Computing<T> gradients[kWidth];
    loaded.unpack(gradients);
#pragma unroll
    for (int i = 0; i < kWidth; ++i)
      if (static_cast<int>(codes.at[i]) == index) sums[i] += gradients[i];
  });
  store<T, kWidth>(place.own<T>(call.x), sums);
}

bool has_window(const MaxPoolCall& call, int depth, int side) {
  const int kernel[3] = {depth, side, side};
  for (int axis = 0; axis < 3; ++axis)
    if (call.axes[axis].kernel != kernel[axis] || call.axes[axis].dilation != 1) return false;
  return !call.has_wide_choices;
}

}  // namespace

cudaError_t launch_maxima(const MaxPoolCall& call, cudaStream_t stream) {
  return choose_width(call.threads, [&](auto tag, auto width) {
    using T = typename decltype(tag)::Type;
    constexpr int kWidth = decltype(width)::value;
    const auto kernel = has_window(call, 1, 2)   ? small_maxima_kernel<T, kWidth, 1, 2>
                        : has_window(call, 1, 3) ? small_maxima_kernel<T, kWidth, 1, 3>
                        : has_window(call, 2, 2) ? small_maxima_kernel<T, kWidth, 2, 2>
                        : call.has_wide_choices  ? maxima_kernel<T, kWidth, int32_t>
                                                 : maxima_kernel<T, kWidth, uint8_t>;
    return launch_kernel(kernel, call.threads.blocks(), call.threads.threads(), stream, call);
  });
}

cudaError_t launch_maxima_scatter(const MaxPoolCall& call, cudaStream_t stream) {
  return choose_width(call.threads, [&](auto tag, auto width) {
    using T = typename decltype(tag)::Type;
    constexpr int kWidth = decltype(width)::value;
    const auto kernel = call.has_wide_choices ? maxima_scatter_kernel<T, kWidth, int32_t>
                                              : maxima_scatter_kernel<T, kWidth, uint8_t>;
    return launch_kernel(kernel, call.threads.blocks(), call.threads.threads(), stream, call);
  });
}

cudaError_t launch_maxima_gather(const MaxPoolCall& call, cudaStream_t stream) {
  return choose_width(call.threads, [&](auto tag, auto width) {
    using T = typename decltype(tag)::Type;
    constexpr int kWidth = decltype(width)::value;
    const auto kernel = call.has_wide_choices ? maxima_gather_kernel<T, kWidth, int32_t>
                                              : maxima_gather_kernel<T, kWidth, uint8_t>;
    return launch_kernel(kernel, call.threads.blocks(), call.threads.threads(), stream, call);
  });
}

}  // namespace tessera::cuda
