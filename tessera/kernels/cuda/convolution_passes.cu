#include <cuda_bf16.h>

#include <algorithm>

#include "tessera/kernels/cuda/convolution_passes.h"

namespace tessera::cuda {
namespace {

constexpr int kThreads = 256;

__device__ inline float wide(float x) { return x; }
__device__ inline float wide(__nv_bfloat16 x) { return __bfloat162float(x); }
template <class T>
__device__ inline T narrow(float x) {
  return static_cast<T>(x);
}
template <>
__device__ inline __nv_bfloat16 narrow<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}

// A weight is turned round in tiles through shared memory, so that both sides are read and written
// in runs: 32 channels that lie side by side on the one side (`inner`), some of the other channels
// (`outer`), and some taps.

constexpr int kInner = 32;
constexpr int kMostRow = 129;  // numbers of a tile for one inner channel; odd: no bank conflicts

struct Tiling {
  int64_t inner = 0, outer = 0, taps = 0;   // of one group
  int outer_at_once = 0, taps_at_once = 0;  // of a tile
  int64_t inner_tiles = 0, outer_tiles = 0, tap_tiles = 0;

  __host__ __device__ int row() const { return (outer_at_once * taps_at_once) | 1; }
};

struct Tile {
  int64_t group, inner, outer, tap;    // where it begins
  int num_inner, num_outer, num_taps;  // how much of it there is
};

Tiling tiling_of(int64_t inner, int64_t outer, int64_t taps) {
  Tiling tiling;
  tiling.inner = inner;
  tiling.outer = outer;
  tiling.taps = taps;
  tiling.taps_at_once = static_cast<int>(std::min<int64_t>(taps, 64));
  tiling.outer_at_once = static_cast<int>(
      std::min<int64_t>({outer, 32, std::max<int64_t>(1, (kMostRow - 1) / tiling.taps_at_once)}));
  tiling.inner_tiles = (inner + kInner - 1) / kInner;
  tiling.outer_tiles = (outer + tiling.outer_at_once - 1) / tiling.outer_at_once;
  tiling.tap_tiles = (taps + tiling.taps_at_once - 1) / tiling.taps_at_once;
  return tiling;
}

__device__ inline int part_of(int64_t size, int64_t begin, int most) {
  return size - begin < most ? static_cast<int>(size - begin) : most;
}

__device__ inline Tile tile_of(const Tiling& tiling, int64_t index) {
  Tile tile;
  tile.inner = index % tiling.inner_tiles * kInner;
  index /= tiling.inner_tiles;
  tile.outer = index % tiling.outer_tiles * tiling.outer_at_once;
  index /= tiling.outer_tiles;
  tile.tap = index % tiling.tap_tiles * tiling.taps_at_once;
  tile.group = index / tiling.tap_tiles;
  tile.num_inner = part_of(tiling.inner, tile.inner, kInner);
  tile.num_outer = part_of(tiling.outer, tile.outer, tiling.outer_at_once);
  tile.num_taps = part_of(tiling.taps, tile.tap, tiling.taps_at_once);
  return tile;
}

/// Calls visit(inner, outer, tap) for all of a tile, in an order in which neighbouring threads have
/// neighbouring inner channels.
template <class Visit>
__device__ inline void inner_first(const Tile& tile, const Visit& visit) {
  const int count = tile.num_outer * tile.num_taps * kInner;
  for (int i = threadIdx.x; i < count; i += kThreads) {
    const int inner = i % kInner, rest = i / kInner;
    if (inner < tile.num_inner) visit(inner, rest / tile.num_taps, rest % tile.num_taps);
  }
}

/// The same for neighbouring taps; the inner or the outer channels follow.
template <bool kInnerFollows, class Visit>
__device__ inline void taps_first(const Tile& tile, const Visit& visit) {
  const int count = tile.num_outer * tile.num_taps * tile.num_inner;
  const int follows = kInnerFollows ? tile.num_inner : tile.num_outer;
  for (int i = threadIdx.x; i < count; i += kThreads) {
    const int tap = i % tile.num_taps, rest = i / tile.num_taps;
    const int near = rest % follows, far = rest / follows;
    visit(kInnerFollows ? near : far, kInnerFollows ? far : near, tap);
  }
}

/// Inner channels are the fine ones, or, mirrored, the coarse ones.
template <class T, bool kMirrored>
__global__ void __launch_bounds__(kThreads) turn_weight(Tiling tiling, const float* from, T* to) {
  __shared__ float numbers[kInner * kMostRow];
  const Tile tile = tile_of(tiling, blockIdx.x);
  const int row = tiling.row(), taps_at_once = tiling.taps_at_once;
  const int64_t group = tile.group * tiling.inner * tiling.outer * tiling.taps;
  taps_first<!kMirrored>(tile, [&](int inner, int outer, int tap) {
    const int64_t i = tile.inner + inner, o = tile.outer + outer;
    const int64_t pair = kMirrored ? i * tiling.outer + o : o * tiling.inner + i;
    numbers[inner * row + outer * taps_at_once + tap] =
        from[group + pair * tiling.taps + tile.tap + tap];
  });
  __syncthreads();
  inner_first(tile, [&](int inner, int outer, int tap) {
    const int64_t t = tile.tap + tap;
    const int64_t line = (tile.outer + outer) * tiling.taps + (kMirrored ? tiling.taps - 1 - t : t);
    to[group + line * tiling.inner + tile.inner + inner] =
        narrow<T>(numbers[inner * row + outer * taps_at_once + tap]);
  });
}

template <class T>
__global__ void __launch_bounds__(kThreads) add_turned(Tiling tiling, const T* from, float* to) {
  __shared__ float numbers[kInner * kMostRow];
  const Tile tile = tile_of(tiling, blockIdx.x);
  const int row = tiling.row(), taps_at_once = tiling.taps_at_once;
  const int64_t group = tile.group * tiling.inner * tiling.outer * tiling.taps;
  inner_first(tile, [&](int inner, int outer, int tap) {
    const int64_t line = (tile.outer + outer) * tiling.taps + tile.tap + tap;
    numbers[inner * row + outer * taps_at_once + tap] =
        wide(from[group + line * tiling.inner + tile.inner + inner]);
  });
  __syncthreads();
  taps_first<true>(tile, [&](int inner, int outer, int tap) {
    const int64_t pair = (tile.outer + outer) * tiling.inner + tile.inner + inner;
    to[group + pair * tiling.taps + tile.tap + tap] +=
        numbers[inner * row + outer * taps_at_once + tap];
  });
}

unsigned blocks_of(const Tiling& tiling, int64_t groups) {
  return static_cast<unsigned>(groups * tiling.inner_tiles * tiling.outer_tiles * tiling.tap_tiles);
}

bool is_empty(const WeightShape& shape) {
  return shape.groups == 0 || shape.coarse == 0 || shape.fine == 0 || shape.taps == 0;
}

template <bool kMirrored>
void turn(const WeightShape& shape, const float* from, void* to, ImageNumber type,
          cudaStream_t stream) {
  if (is_empty(shape)) return;
  const Tiling tiling = kMirrored ? tiling_of(shape.coarse, shape.fine, shape.taps)
                                  : tiling_of(shape.fine, shape.coarse, shape.taps);
  const unsigned blocks = blocks_of(tiling, shape.groups);
  if (type == ImageNumber::kBFloat16)
    turn_weight<__nv_bfloat16, kMirrored>
        <<<blocks, kThreads, 0, stream>>>(tiling, from, static_cast<__nv_bfloat16*>(to));
  else
    turn_weight<float, kMirrored>
        <<<blocks, kThreads, 0, stream>>>(tiling, from, static_cast<float*>(to));
}

/// Numbers that are read and written at once.
template <class T, int kCount>
struct alignas(sizeof(T) * kCount) Pack {
  T numbers[kCount];
};

/// A thread stays with its channels, so that it reads their biases once.
template <class T, int kCount>
__global__ void __launch_bounds__(kThreads)
    copy_image(ImageExtent extent, int lanes, const T* from, ImageSteps from_steps, T* to,
               ImageSteps to_steps, const float* bias) {
  using Numbers = Pack<T, kCount>;
  const int lane = threadIdx.x % lanes, pixels_at_once = blockDim.x / lanes;
  const int64_t lines = extent.samples * extent.slices * extent.rows;
  for (int64_t c = static_cast<int64_t>(lane) * kCount; c < extent.channels;
       c += static_cast<int64_t>(lanes) * kCount) {
    float biases[kCount];
    for (int i = 0; i < kCount; ++i) biases[i] = bias == nullptr ? 0.0f : bias[c + i];
    for (int64_t line = blockIdx.x; line < lines; line += gridDim.x) {
      const int64_t row = line % extent.rows, rest = line / extent.rows;
      const int64_t slice = rest % extent.slices, sample = rest / extent.slices;
      const T* source =
          from + sample * from_steps.sample + slice * from_steps.slice + row * from_steps.row + c;
      T* target = to + sample * to_steps.sample + slice * to_steps.slice + row * to_steps.row + c;
      for (int64_t pixel = threadIdx.x / lanes; pixel < extent.pixels; pixel += pixels_at_once) {
        Numbers numbers = *reinterpret_cast<const Numbers*>(source + pixel * from_steps.pixel);
        if (bias != nullptr)
#pragma unroll
          for (int i = 0; i < kCount; ++i)
            numbers.numbers[i] = narrow<T>(wide(numbers.numbers[i]) + biases[i]);
        *reinterpret_cast<Numbers*>(target + pixel * to_steps.pixel) = numbers;
      }
    }
  }
}

bool divides(int64_t count, const ImageSteps& steps) {
  return steps.sample % count == 0 && steps.slice % count == 0 && steps.row % count == 0 &&
         steps.pixel % count == 0;
}

bool is_aligned(const void* address) { return reinterpret_cast<uintptr_t>(address) % 16 == 0; }

template <class T, int kCount>
void launch_copy(const ImageExtent& extent, const void* from, const ImageSteps& from_steps,
                 void* to, const ImageSteps& to_steps, const float* bias, cudaStream_t stream) {
  const int lanes =
      static_cast<int>(std::min<int64_t>((extent.channels + kCount - 1) / kCount, kThreads));
  const int64_t lines = extent.samples * extent.slices * extent.rows;
  const unsigned blocks = static_cast<unsigned>(std::min<int64_t>(lines, 1 << 16));
  copy_image<T, kCount><<<blocks, kThreads / lanes * lanes, 0, stream>>>(
      extent, lanes, static_cast<const T*>(from), from_steps, static_cast<T*>(to), to_steps, bias);
}

template <class T>
void copy_numbers(const ImageExtent& extent, const void* from, const ImageSteps& from_steps,
                  void* to, const ImageSteps& to_steps, const float* bias, cudaStream_t stream) {
  constexpr int kAtOnce = 16 / sizeof(T);
  if (extent.channels % kAtOnce == 0 && divides(kAtOnce, from_steps) &&
      divides(kAtOnce, to_steps) && is_aligned(from) && is_aligned(to))
    launch_copy<T, kAtOnce>(extent, from, from_steps, to, to_steps, bias, stream);
  else
    launch_copy<T, 1>(extent, from, from_steps, to, to_steps, bias, stream);
}

}  // namespace

void weight_channels_last(const WeightShape& shape, const float* from, void* to, ImageNumber type,
                          cudaStream_t stream) {
  turn<false>(shape, from, to, type, stream);
}

void weight_mirrored(const WeightShape& shape, const float* from, void* to, ImageNumber type,
                     cudaStream_t stream) {
  turn<true>(shape, from, to, type, stream);
}

void add_weight_gradient(const WeightShape& shape, const void* from, ImageNumber type, float* to,
                         cudaStream_t stream) {
  if (is_empty(shape)) return;
  const Tiling tiling = tiling_of(shape.fine, shape.coarse, shape.taps);
  const unsigned blocks = blocks_of(tiling, shape.groups);
  if (type == ImageNumber::kBFloat16)
    add_turned<<<blocks, kThreads, 0, stream>>>(tiling, static_cast<const __nv_bfloat16*>(from),
                                                to);
  else
    add_turned<<<blocks, kThreads, 0, stream>>>(tiling, static_cast<const float*>(from), to);
}

void copy_with_bias(const ImageExtent& extent, const void* from, const ImageSteps& from_steps,
                    void* to, const ImageSteps& to_steps, const float* bias, ImageNumber type,
                    cudaStream_t stream) {
  if (extent.samples * extent.slices * extent.rows * extent.pixels * extent.channels == 0) return;
  if (type == ImageNumber::kBFloat16)
    copy_numbers<__nv_bfloat16>(extent, from, from_steps, to, to_steps, bias, stream);
  else
    copy_numbers<float>(extent, from, from_steps, to, to_steps, bias, stream);
}

}  // namespace tessera::cuda
