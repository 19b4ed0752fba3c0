#pragma once
// From views to the boxes of a launch.

#include <ATen/ATen.h>

#include <optional>

#include "tessera/kernels/cuda/pack_launch.h"

namespace tessera::cuda {

/// What one launch does with all of its boxes.
struct BoxKind {
  BoxWork work;
  BoxNumber source = BoxNumber::kByte, target = BoxNumber::kByte;

  bool operator==(const BoxKind&) const = default;
};

/// Undefined sources are zeros. Nothing where there is no kernel for these types.
std::optional<BoxKind> kind_of(bool adds, const at::Tensor& source, const at::Tensor& target);

/// Of views that are not empty, with as few axes and as long units as they allow. Nothing where
/// there are still too many axes.
std::optional<PackedBox> pack_box(const BoxKind& kind, const at::Tensor& source,
                                  const at::Tensor& target);

/// Whether two views may have a number in common. Exact for views of one buffer, all of which have
/// its strides.
bool may_meet(const at::Tensor& a, const at::Tensor& b);

}  // namespace tessera::cuda
