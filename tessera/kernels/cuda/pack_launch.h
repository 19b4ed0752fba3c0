#pragma once
// What pack.cpp hands to the kernels of pack.cu. A list of boxes is a parameter of the kernel, of
// which there may be 4096 bytes.

#include <cuda_runtime_api.h>

#include <cstdint>

namespace tessera::cuda {

inline constexpr int kBoxAxes = 5;
inline constexpr int kBoxesOfCall = 28;
inline constexpr int kBoxThreads = 256;
inline constexpr int kUnitsOfThread = 4;

enum class BoxWork { kCopy, kZero, kConvert, kAdd };
enum class BoxNumber { kFloat64, kFloat32, kBFloat16, kInt64, kInt32, kByte };

/// Axes in row-major order; what is not used has size 1. Sizes and strides count units, which are
/// moved at once: so many bytes for kCopy and kZero, so many numbers for the others.
struct PackedBox {
  const void* source = nullptr;
  void* target = nullptr;
  int64_t source_strides[kBoxAxes] = {}, target_strides[kBoxAxes] = {};
  uint32_t sizes[kBoxAxes] = {1, 1, 1, 1, 1};
  uint32_t unit = 1;
  int64_t first_block = 0;
};

struct BoxCall {
  BoxWork work = BoxWork::kCopy;
  BoxNumber source = BoxNumber::kByte, target = BoxNumber::kByte;
  int count = 0;
  int64_t blocks = 0;
  PackedBox boxes[kBoxesOfCall];
};
static_assert(sizeof(BoxCall) <= 4096);

/// Of kConvert and kAdd: whether there is a kernel for these types.
bool has_box_kernel(BoxWork work, BoxNumber source, BoxNumber target);
cudaError_t launch(const BoxCall& call, cudaStream_t stream);

}  // namespace tessera::cuda
