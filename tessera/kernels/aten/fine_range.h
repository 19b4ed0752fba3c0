#pragma once
// Which part of a fine image the windows of a coarse one read, for functions of libraries that know
// neither views that begin anywhere nor windows that leave the image on one side only.

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "tessera/geometry/range.h"
#include "tessera/kernels/convolution.h"

namespace tessera::aten {

/// One position or size for each spatial axis.
using Places = std::vector<int64_t>;

inline Places zeros_for(const ConvolutionShape& shape) { return Places(shape.stride.size(), 0); }

inline Places fine_begin(const ConvolutionShape& shape) {
  return shape.fine_begin.empty() ? zeros_for(shape) : shape.fine_begin;
}

/// Of `image`, which begins at `begin` of an axis, the range from `to_begin` to `to_end`: cut, and
/// zeros where the image is not.
inline at::Tensor refit(const at::Tensor& image, const Places& begin, const Places& to_begin,
                        const Places& to_end) {
  at::Tensor part = image;
  std::vector<int64_t> padding;
  bool is_padded = false;
  for (int64_t axis = std::ssize(begin) - 1; axis >= 0; --axis) {
    const Range held{begin[axis], begin[axis] + image.size(2 + axis)};
    const Range wanted{to_begin[axis], to_end[axis]};
    Range both = intersect(held, wanted);
    if (both.empty()) both = {wanted.begin, wanted.begin};
    part = part.narrow(2 + axis, both.empty() ? 0 : both.begin - held.begin, both.size());
    padding.push_back(both.begin - wanted.begin);
    padding.push_back(wanted.end - both.end);
    is_padded = is_padded || both != wanted;
  }
  return is_padded ? at::constant_pad_nd(part, padding) : part;
}

/// How far the windows of all coarse positions reach into the fine image.
inline Places reach(const ConvolutionShape& shape, const at::Tensor& weight,
                    const at::Tensor& coarse) {
  Places ends;
  for (int64_t axis = 0; axis < std::ssize(shape.stride); ++axis)
    ends.push_back((coarse.size(2 + axis) - 1) * shape.stride[axis] +
                   (weight.size(2 + axis) - 1) * shape.dilation[axis] + 1);
  return ends;
}

inline at::Tensor all_that_is_read(const ConvolutionShape& shape, const at::Tensor& fine,
                                   const at::Tensor& weight, const at::Tensor& coarse) {
  return refit(fine, fine_begin(shape), zeros_for(shape), reach(shape, weight, coarse));
}

}  // namespace tessera::aten
