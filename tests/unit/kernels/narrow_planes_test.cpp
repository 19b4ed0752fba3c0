// Kernels over planes on values of type bf16, beside the same kernels on the same numbers in
// float32: sums to the bit, images rounded once.

#include <gtest/gtest.h>

#include "tessera/kernels/norm.h"
#include "tessera/kernels/space_sum.h"
#include "tests/unit/ops/random_views.h"

namespace tessera::narrow_planes_test {
namespace {

constexpr at::ScalarType kNarrow = at::kBFloat16;

/// An image in both types, with the same strides: the order of a sum depends on them.
struct Both {
  at::Tensor narrow, wide;
};

Both with_wide(const at::Tensor& narrow) {
  const at::Tensor wide = at::empty_strided(narrow.sizes(), narrow.strides(), at::kFloat);
  return {narrow, wide.copy_(narrow)};
}

Both draw_both(Draw& draw, const Shape& shape) {
  return with_wide(strided_copy(draw, draw.uniform(shape, -2, 2).to(kNarrow)));
}

Both places(Draw& draw, const Shape& shape) {
  return with_wide(surrounded(draw, shape, kNarrow).view);
}

void expect_rounded(const Both& images, const char* what) {
  EXPECT_TRUE(images.narrow.equal(images.wide.to(kNarrow))) << what;
}

PlaneNorm draw_norm(Draw& draw, int64_t channels, NormActivation activation) {
  PlaneNorm norm;
  norm.activation = activation;
  for (at::Tensor* numbers : {&norm.mean, &norm.inverse_std})
    *numbers = draw.uniform({1, channels}, 0.5, 1.5).to(at::kDouble);
  for (at::Tensor* numbers : {&norm.weight, &norm.bias})
    *numbers = draw.uniform({channels}, 0.5, 1.5);
  return norm;
}

class NarrowPlanes : public testing::TestWithParam<uint64_t> {
 protected:
  NarrowPlanes() : draw_(GetParam()) {
    for (int64_t most : {3, 4, 9, 90}) shape_.push_back(draw_.between(1, most));
  }

  Draw draw_;
  Shape shape_;
};

TEST_P(NarrowPlanes, Moments) {
  const Both x = draw_both(draw_, shape_);
  const at::Tensor narrow = at::empty({1, shape_[1], kNumbersPerCell}, at::kDouble);
  const at::Tensor wide = at::empty_like(narrow);
  plane_moments(x.narrow, narrow);
  plane_moments(x.wide, wide);
  EXPECT_TRUE(narrow.equal(wide));
}

TEST_P(NarrowPlanes, NormalisationEachWay) {
  const int64_t channels = shape_[1];
  for (const NormActivation activation : {NormActivation::kNone, NormActivation::kRelu})
    for (const bool adds : {false, true}) {
      const PlaneNorm norm = draw_norm(draw_, channels, activation);
      const Both x = draw_both(draw_, shape_), dy = draw_both(draw_, shape_);
      const Both added = adds ? draw_both(draw_, shape_) : Both{};
      const Both y = places(draw_, shape_), dx = places(draw_, shape_);
      const Both grad_added = adds ? places(draw_, shape_) : Both{};
      normalise(x.narrow, norm, added.narrow, y.narrow);
      normalise(x.wide, norm, added.wide, y.wide);
      expect_rounded(y, "y");

      const bool by_output = adds && activation == NormActivation::kRelu;
      const Both kept = by_output ? with_wide(y.narrow) : Both{};
      const at::Tensor sums = at::empty({2, 1, channels}, at::kDouble);
      const at::Tensor wide_sums = at::empty_like(sums);
      plane_gradient_sums(x.narrow, kept.narrow, dy.narrow, norm, sums[0], sums[1]);
      plane_gradient_sums(x.wide, kept.wide, dy.wide, norm, wide_sums[0], wide_sums[1]);
      EXPECT_TRUE(sums.equal(wide_sums));

      const at::Tensor mean_dxhat = at::full({1, channels}, 0.25, at::kDouble);
      const at::Tensor mean_dxhat_xhat = at::full({1, channels}, -0.5, at::kDouble);
      normalise_gradient(x.narrow, kept.narrow, dy.narrow, norm, mean_dxhat, mean_dxhat_xhat,
                         dx.narrow, grad_added.narrow);
      normalise_gradient(x.wide, kept.wide, dy.wide, norm, mean_dxhat, mean_dxhat_xhat, dx.wide,
                         grad_added.wide);
      expect_rounded(dx, "dx");
      if (adds) expect_rounded(grad_added, "gradient of what was added");
    }
}

TEST_P(NarrowPlanes, SumsOverSpace) {
  const Both x = draw_both(draw_, shape_);
  const at::Tensor narrow = at::empty({shape_[0], shape_[1]}, at::kFloat);
  const at::Tensor wide = at::empty_like(narrow);
  sum_space(x.narrow, 0.5, narrow);
  sum_space(x.wide, 0.5, wide);
  EXPECT_TRUE(narrow.equal(wide));
}

INSTANTIATE_TEST_SUITE_P(Seeds, NarrowPlanes, testing::Range<uint64_t>(0, 30));

}  // namespace
}  // namespace tessera::narrow_planes_test
