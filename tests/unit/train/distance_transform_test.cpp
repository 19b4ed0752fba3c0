// Distances against a search over all pixels, and against SciPy's.

#include "tessera/train/distance_transform.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace tessera::distance_transform_test {
namespace {

/// The place of a pixel along each axis.
Shape place_of(int64_t pixel, const Shape& shape) {
  Shape place(shape.size());
  for (size_t axis = shape.size(); axis-- > 0; pixel /= shape[axis])
    place[axis] = pixel % shape[axis];
  return place;
}

std::vector<double> by_search(const std::vector<uint8_t>& mask, const Shape& shape,
                              const std::vector<double>& spacing) {
  std::vector<double> nearest(mask.size(), std::numeric_limits<double>::infinity());
  for (size_t from = 0; from < mask.size(); ++from)
    for (size_t to = 0; to < mask.size(); ++to) {
      if (mask[to] == 0) continue;
      const Shape a = place_of(static_cast<int64_t>(from), shape),
                  b = place_of(static_cast<int64_t>(to), shape);
      double square = 0;
      for (size_t axis = 0; axis < shape.size(); ++axis)
        square += std::pow(static_cast<double>(a[axis] - b[axis]) * spacing[axis], 2);
      nearest[from] = std::min(nearest[from], square);
    }
  return nearest;
}

TEST(SquaredDistances, AreThoseOfASearch) {
  std::mt19937_64 random(7);
  const std::vector<std::pair<Shape, std::vector<double>>> cases{{{17}, {0.3}},
                                                                 {{1}, {2}},
                                                                 {{9, 13}, {1, 1}},
                                                                 {{8, 11}, {2.5, 0.4}},
                                                                 {{5, 6, 7}, {3, 1, 0.7}}};
  for (const auto& [shape, spacing] : cases)
    for (int density : {1, 4, 30}) {
      std::vector<uint8_t> mask(Box::whole(shape).volume());
      for (uint8_t& pixel : mask) pixel = random() % density == 0 ? 1 : 0;
      const std::vector<double> found = squared_distances(mask, shape, spacing);
      const std::vector<double> wanted = by_search(mask, shape, spacing);
      for (size_t i = 0; i < mask.size(); ++i) {
        if (std::isinf(wanted[i]))
          EXPECT_EQ(found[i], wanted[i]);
        else
          EXPECT_NEAR(found[i], wanted[i], 1e-12) << to_string(shape) << " at " << i;
      }
    }
}

TEST(SquaredDistances, AreScipys) {
  std::vector<uint8_t> mask(24, 0);
  mask[1] = mask[3 * 6 + 4] = 1;
  const std::vector<double> scipy{0.25, 0, 0.25, 1, 2.25, 4, 4.25, 4, 4.25, 5, 6.25, 8, 8,
                                  6.25, 5, 4.25, 4, 4.25, 4, 2.25, 1, 0.25, 0, 0.25};
  EXPECT_EQ(squared_distances(mask, {4, 6}, {2.0, 0.5}), scipy);
}

TEST(SquaredDistances, AreInfiniteWhereThereIsNothing) {
  for (double distance : squared_distances(std::vector<uint8_t>(6, 0), {2, 3}, {1, 1}))
    EXPECT_TRUE(std::isinf(distance));
}

}  // namespace
}  // namespace tessera::distance_transform_test
