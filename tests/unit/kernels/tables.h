#pragma once
// Two tables of one family side by side: the same arguments in views of any strides, and how far
// the results may be apart.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <limits>

#include "tests/unit/ops/random_views.h"

namespace tessera {

/// What sums in another order explain.
inline double rounding_of(at::ScalarType type) {
  return type == at::kDouble ? 1e-12 : type == at::kFloat ? 2e-5 : 0.03;
}

/// Relative to the largest number, at least to 1; what is not finite is the same.
inline void expect_near(const at::Tensor& found, const at::Tensor& expected, double limit) {
  ASSERT_EQ(found.sizes(), expected.sizes());
  ASSERT_EQ(found.scalar_type(), expected.scalar_type());
  if (found.numel() == 0) return;
  const at::Tensor a = found.to(at::kDouble), b = expected.to(at::kDouble);
  const double scale = std::max(at::nan_to_num(b, 0, 0, 0).abs().max().item<double>(), 1.0);
  EXPECT_TRUE(a.allclose(b, 0, limit * scale, /*equal_nan=*/true))
      << (a - b).abs().max().item<double>() << " of " << scale;
}

inline void expect_same(const at::Tensor& found, const at::Tensor& expected) {
  expect_near(found, expected, 0);
}

/// Numbers of which many are equal, and some are not numbers or infinite.
inline at::Tensor wild_numbers(Draw& draw, const Shape& shape, at::ScalarType type) {
  at::Tensor numbers = draw.uniform(shape, -3, 3).round();
  const at::Tensor fate = draw.uniform(shape, 0, 1);
  numbers.masked_fill_(fate < 0.05, std::numeric_limits<double>::quiet_NaN());
  numbers.masked_fill_(fate > 0.9, -std::numeric_limits<double>::infinity());
  numbers.masked_fill_((fate > 0.85).logical_and(fate < 0.9),
                       std::numeric_limits<double>::infinity());
  return strided_copy(draw, numbers.to(type));
}

inline at::Tensor any_numbers(Draw& draw, const Shape& shape, at::ScalarType type) {
  return strided_copy(draw, draw.uniform(shape, -2, 2).to(type));
}

/// Batch x channels x `num_spatial` axes.
inline Shape draw_image(Draw& draw, int64_t num_spatial, int64_t most = 9) {
  Shape shape{draw.between(1, 3), draw.between(1, 6)};
  for (int64_t axis = 0; axis < num_spatial; ++axis) shape.push_back(draw.between(1, most));
  return shape;
}

/// Calls check(draw, type, number of spatial axes) for many seeds and the types.
template <class Check>
void for_many_draws(uint64_t count, std::initializer_list<at::ScalarType> types,
                    const Check& check) {
  for (uint64_t seed = 0; seed < count; ++seed)
    for (const at::ScalarType type : types) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << " in " << type);
      Draw draw(seed);
      check(draw, type, 1 + static_cast<int64_t>(seed % 3));
    }
}

inline constexpr std::initializer_list<at::ScalarType> kWideTypes{at::kDouble, at::kFloat};

/// A view to write into, and that nothing beside it is touched.
class Target {
 public:
  Target(Draw& draw, const Shape& shape, at::ScalarType type)
      : place_(surrounded(draw, shape, type)) {}
  ~Target() { EXPECT_TRUE(place_.surroundings_untouched()); }
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;

  const at::Tensor& view() const { return place_.view; }
  operator const at::Tensor&() const { return place_.view; }

 private:
  Surrounded place_;
};

}  // namespace tessera
