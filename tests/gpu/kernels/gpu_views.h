#pragma once
// Images as they lie on a GPU: channels last, dense or inside a larger image of NaN, which nobody
// may touch.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/unit/ops/random_views.h"

namespace tessera::gpu_test {

enum class Lying { kDense, kInside };

class Placed {
 public:
  /// Room for an image of this shape.
  Placed(Draw& draw, const Shape& shape, at::ScalarType type, Lying lying) {
    Shape outer = shape, begin(shape.size(), 0);
    for (size_t axis = 2; lying == Lying::kInside && axis < shape.size(); ++axis) {
      begin[axis] = draw.between(0, 2);
      outer[axis] += begin[axis] + draw.between(0, 2);
    }
    Shape memory{outer[0]};  // the order of the axes in memory: channels last
    memory.insert(memory.end(), outer.begin() + 2, outer.end());
    memory.push_back(outer[1]);
    whole_ = at::full(memory, std::numeric_limits<double>::quiet_NaN(),
                      at::TensorOptions(at::kCUDA).dtype(type))
                 .movedim(-1, 1);
    view_ = whole_;
    for (size_t axis = 2; axis < shape.size(); ++axis)
      view_ = view_.narrow(static_cast<int64_t>(axis), begin[axis], shape[axis]);
  }
  Placed(Draw& draw, const at::Tensor& image, at::ScalarType type, Lying lying)
      : Placed(draw, image.sizes().vec(), type, lying) {
    view_.copy_(image);
  }

  const at::Tensor& view() const { return view_; }
  operator const at::Tensor&() const { return view_; }

  void expect_surroundings_untouched() const {
    view_.zero_();
    EXPECT_EQ(whole_.isnan().sum().item<int64_t>(), whole_.numel() - view_.numel());
  }

 private:
  at::Tensor whole_, view_;
};

inline Lying draw_lying(Draw& draw) {
  return draw.between(0, 1) == 0 ? Lying::kDense : Lying::kInside;
}

/// Numbers for parameters: a run in the memory of the GPU that begins anywhere.
inline at::Tensor run_on_gpu(Draw& draw, const at::Tensor& numbers, at::ScalarType type) {
  const int64_t begin = draw.between(0, 5);
  const at::Tensor longer =
      at::zeros({begin + numbers.numel() + 3}, at::TensorOptions(at::kCUDA).dtype(type));
  return longer.narrow(0, begin, numbers.numel()).view(numbers.sizes()).copy_(numbers);
}

/// The largest difference, as a part of the largest number.
inline double distance(const at::Tensor& found, const at::Tensor& right) {
  if (right.numel() == 0) return 0;
  const at::Tensor numbers = found.cpu().to(at::kDouble);
  return ((numbers - right).abs().max() / right.abs().max().clamp_min(1e-3)).item<double>();
}

}  // namespace tessera::gpu_test
