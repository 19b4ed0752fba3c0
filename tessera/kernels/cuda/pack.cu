// Many boxes in one launch: a block finds the box that it works on, and its threads visit units at
// equal distances.

#include "tessera/kernels/cuda/image_walk.cuh"
#include "tessera/kernels/cuda/launch_kernel.cuh"
#include "tessera/kernels/cuda/pack_launch.h"

namespace tessera::cuda {
namespace {

struct Places {
  int64_t source = 0, target = 0;
};

template <class Index>
__device__ Places places_of(const PackedBox& box, Index rest) {
  Places at;
#pragma unroll
  for (int axis = kBoxAxes - 1; axis >= 0; --axis) {
    const Index size = box.sizes[axis];
    if (size == 1) continue;
    const Index next = rest / size;
    const auto index = static_cast<int64_t>(rest - next * size);
    at.source += index * box.source_strides[axis];
    at.target += index * box.target_strides[axis];
    rest = next;
  }
  return at;
}

/// Calls visit(places) for the units of this block: all places first, so that loads are under way
/// together.
template <class Load, class Store>
__device__ void for_units(const PackedBox& box, Load&& load, Store&& store) {
  int64_t count = 1;
  for (int axis = 0; axis < kBoxAxes; ++axis) count *= box.sizes[axis];
  const int64_t first =
      (blockIdx.x - box.first_block) * (kBoxThreads * kUnitsOfThread) + threadIdx.x;
  Places places[kUnitsOfThread];
#pragma unroll
  for (int i = 0; i < kUnitsOfThread; ++i) {
    const int64_t unit = first + i * kBoxThreads;
    if (unit >= count) break;
    places[i] = count <= UINT32_MAX ? places_of(box, static_cast<uint32_t>(unit))
                                    : places_of(box, static_cast<uint64_t>(unit));
    load(i, places[i]);
  }
#pragma unroll
  for (int i = 0; i < kUnitsOfThread; ++i) {
    if (first + i * kBoxThreads >= count) break;
    store(i, places[i]);
  }
}

__device__ const PackedBox& box_of_block(const BoxCall& call) {
  int box = call.count - 1;
  while (blockIdx.x < call.boxes[box].first_block) --box;
  return call.boxes[box];
}

template <class Unit>
__device__ void copy_units(const PackedBox& box) {
  Unit units[kUnitsOfThread];
  for_units(
      box,
      [&](int i, const Places& at) { units[i] = static_cast<const Unit*>(box.source)[at.source]; },
      [&](int i, const Places& at) { static_cast<Unit*>(box.target)[at.target] = units[i]; });
}

template <class Unit>
__device__ void zero_units(const PackedBox& box) {
  for_units(
      box, [](int, const Places&) {},
      [&](int, const Places& at) { static_cast<Unit*>(box.target)[at.target] = Unit{}; });
}

template <bool kIsZero, class Unit>
__device__ void move_units(const PackedBox& box) {
  if constexpr (kIsZero)
    zero_units<Unit>(box);
  else
    copy_units<Unit>(box);
}

template <bool kIsZero>
__global__ void __launch_bounds__(kBoxThreads) bytes_kernel(const __grid_constant__ BoxCall call) {
  const PackedBox& box = box_of_block(call);
  if (box.unit == 16)
    move_units<kIsZero, uint4>(box);
  else if (box.unit == 8)
    move_units<kIsZero, uint2>(box);
  else if (box.unit == 4)
    move_units<kIsZero, uint32_t>(box);
  else if (box.unit == 2)
    move_units<kIsZero, uint16_t>(box);
  else
    move_units<kIsZero, uint8_t>(box);
}

template <class T>
constexpr bool kIsReal = false;
template <>
constexpr bool kIsReal<double> = true;
template <>
constexpr bool kIsReal<float> = true;
template <>
constexpr bool kIsReal<__nv_bfloat16> = true;

/// In the wider of the two types, as ATen's add_ does: bf16 in float32.
template <class Source, class Target, bool kAdds>
__device__ Target combine(Source source, Target target) {
  if constexpr (!kIsReal<Target>) {
    return static_cast<Target>(kAdds ? source + target : source);
  } else {
    const auto number = widen(source);
    if constexpr (kAdds)
      return narrow<Target>(static_cast<Computing<Target>>(number + widen(target)));
    else
      return narrow<Target>(static_cast<Computing<Target>>(number));
  }
}

template <class T, int kWidth>
struct alignas(sizeof(T) * kWidth) Numbers {
  T at[kWidth];
};

template <class Source, class Target, bool kAdds, int kWidth>
__device__ void combine_units(const PackedBox& box) {
  using From = Numbers<Source, kWidth>;
  using To = Numbers<Target, kWidth>;
  From sources[kUnitsOfThread];
  To targets[kUnitsOfThread];
  for_units(
      box,
      [&](int i, const Places& at) {
        sources[i] = static_cast<const From*>(box.source)[at.source];
        if (kAdds) targets[i] = static_cast<const To*>(box.target)[at.target];
      },
      [&](int i, const Places& at) {
#pragma unroll
        for (int n = 0; n < kWidth; ++n)
          targets[i].at[n] = combine<Source, Target, kAdds>(sources[i].at[n], targets[i].at[n]);
        static_cast<To*>(box.target)[at.target] = targets[i];
      });
}

/// As many numbers at once as make 16 bytes of the wider type; or one.
template <class Source, class Target, bool kAdds>
__global__ void __launch_bounds__(kBoxThreads)
    numbers_kernel(const __grid_constant__ BoxCall call) {
  constexpr int kWidth = 16 / (sizeof(Source) > sizeof(Target) ? sizeof(Source) : sizeof(Target));
  const PackedBox& box = box_of_block(call);
  if (box.unit == 1)
    combine_units<Source, Target, kAdds, 1>(box);
  else
    combine_units<Source, Target, kAdds, kWidth>(box);
}

using BoxKernel = void (*)(BoxCall);

template <class Source, class Target>
BoxKernel kernel_of(BoxWork work) {
  return work == BoxWork::kAdd ? numbers_kernel<Source, Target, true>
                               : numbers_kernel<Source, Target, false>;
}

template <class Target>
BoxKernel kernel_to(BoxWork work, BoxNumber source) {
  if (source == BoxNumber::kFloat64) return kernel_of<double, Target>(work);
  if (source == BoxNumber::kFloat32) return kernel_of<float, Target>(work);
  if (source == BoxNumber::kBFloat16) return kernel_of<__nv_bfloat16, Target>(work);
  return nullptr;
}

/// Null where there is none. Whole numbers are only added to their like.
BoxKernel kernel_for(BoxWork work, BoxNumber source, BoxNumber target) {
  if (work == BoxWork::kCopy) return bytes_kernel<false>;
  if (work == BoxWork::kZero) return bytes_kernel<true>;
  if (target == BoxNumber::kFloat64) return kernel_to<double>(work, source);
  if (target == BoxNumber::kFloat32) return kernel_to<float>(work, source);
  if (target == BoxNumber::kBFloat16) return kernel_to<__nv_bfloat16>(work, source);
  if (source != target || work != BoxWork::kAdd) return nullptr;
  if (source == BoxNumber::kInt64) return numbers_kernel<int64_t, int64_t, true>;
  if (source == BoxNumber::kInt32) return numbers_kernel<int32_t, int32_t, true>;
  return numbers_kernel<uint8_t, uint8_t, true>;
}

}  // namespace

bool has_box_kernel(BoxWork work, BoxNumber source, BoxNumber target) {
  return kernel_for(work, source, target) != nullptr;
}

cudaError_t launch(const BoxCall& call, cudaStream_t stream) {
  return launch_kernel(kernel_for(call.work, call.source, call.target), call.blocks, kBoxThreads,
                       stream, call);
}

}  // namespace tessera::cuda
