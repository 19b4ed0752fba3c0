#pragma once
// Boxes on their way between buffers: halos into strips and out of them, copies of a view, borders
// of zeros. A transfer has many small boxes, and on a GPU starting a kernel costs more than most of
// them, so that a whole list is one call.
//
// A box is a view of any strides. Numbers of other types are converted as ATen's copy_ does. No
// source is written by the same call.
//
// Example, a message of two segments and what its receiver does with it:
//   move_boxes(BoxStore::kReplace, {view_of_edge, view_of_corner}, {strip_begin, strip_end});
//   move_boxes(BoxStore::kAdd, {strip_begin, strip_end}, {view_of_edge, view_of_corner});

#include <ATen/ATen.h>

#include <vector>

#include "tessera/kernels/kernel.h"

namespace tessera {

enum class BoxStore { kReplace, kAdd };

struct PackKernels {
  /// Each source to the target at its place in the list, of the same shape. What several boxes add
  /// to one number is added in the list's order, and of several that replace it the last one stays.
  void (*move_boxes)(BoxStore store, const std::vector<at::Tensor>& sources,
                     const std::vector<at::Tensor>& targets);
  void (*zero_boxes)(const std::vector<at::Tensor>& targets);

  static const PackKernels kAten;
  static const PackKernels* const kCuda;
};

/// Lists may be empty.
inline void move_boxes(BoxStore store, const std::vector<at::Tensor>& sources,
                       const std::vector<at::Tensor>& targets) {
  if (!targets.empty()) Kernel<&PackKernels::move_boxes>{}(store, sources, targets);
}
inline void zero_boxes(const std::vector<at::Tensor>& targets) {
  if (!targets.empty()) Kernel<&PackKernels::zero_boxes>{}(targets);
}

}  // namespace tessera
