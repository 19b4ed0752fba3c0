#pragma once
// Random masks as functions of the position in the whole value: any piece draws the same fates.

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "tessera/base/random.h"
#include "tessera/kernels/kernel.h"

namespace tessera {

/// What becomes of an element: x * factor + offset.
struct Fate {
  double factor = 0;
  double offset = 0;
};

struct DropoutMask {
  RandomKey key;
  /// int64 scalar beside the images: the state of the key, which is then read when the kernel runs.
  /// Undefined: `key` is the one.
  at::Tensor state = {};
  double probability = 0;  // of being dropped
  /// The index of an element's draw: this for the piece's first element, and `strides` along the
  /// axes.
  int64_t first_index = 0;
  std::vector<int64_t> strides;
};

struct DropoutKernels {
  /// Views of one shape, of any strides.
  void (*apply_dropout)(const DropoutMask& mask, const Fate& kept, const Fate& dropped,
                        const at::Tensor& from, const at::Tensor& to);

  static const DropoutKernels kCpu;
  static const DropoutKernels kAten;
  static const DropoutKernels* const kCuda;
};
inline constexpr Kernel<&DropoutKernels::apply_dropout> apply_dropout;

}  // namespace tessera
