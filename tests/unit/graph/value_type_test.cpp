// What is known of a value before anything runs: its axes, and strides as exact ratios.

#include "tessera/graph/value_type.h"

#include <gtest/gtest.h>

#include "tests/unit/refusal.h"

namespace tessera::value_type_test {
namespace {

TEST(Ratio, IsInLowestTermsWithAPositiveDenominator) {
  EXPECT_EQ(Ratio::of(6, 4), (Ratio{3, 2}));
  EXPECT_EQ(Ratio::of(6, -4), (Ratio{-3, 2}));
  EXPECT_EQ(Ratio::of(-6, -4), (Ratio{3, 2}));
  EXPECT_EQ(Ratio::of(0, -7), (Ratio{0, 1}));
}

TEST(Ratio, UndoesWhatAPoolingDid) {
  const Ratio two{2, 1}, three{3, 1}, four{4, 1}, pooled = two * three;
  EXPECT_EQ(pooled, (Ratio{6, 1}));
  EXPECT_EQ(pooled / four, (Ratio{3, 2}));
  EXPECT_EQ(pooled / two / three, Ratio());
}

TEST(Ratio, ComparesExactly) {
  EXPECT_LT(Ratio::of(1, 3), Ratio::of(1, 2));
  EXPECT_LT(Ratio::of(-1, 2), Ratio::of(-1, 3));
  EXPECT_FALSE(Ratio::of(2, 4) < Ratio::of(1, 2));
  const int64_t large = 1'000'000'007;  // their difference is lost in double precision
  EXPECT_LT(Ratio::of(large - 1, large), Ratio::of(large, large + 1));
}

TEST(Ratio, HasNoDenominatorOfZero) { EXPECT_THROW(Ratio::of(1, 0), InternalError); }

TEST(ValueType, AnImageHasBatchChannelsAndSpace) {
  const ValueType type = ValueType::image({2, 3, 5, 7});
  ASSERT_EQ(type.num_axes(), 4);
  EXPECT_EQ(type.axes[0], (Axis{AxisKind::kBatch, 2, -1, {}}));
  EXPECT_EQ(type.axes[1], (Axis{AxisKind::kChannel, 3, -1, {}}));
  EXPECT_EQ(type.axes[2], (Axis{AxisKind::kSpatial, 5, 0, {1, 1}}));
  EXPECT_EQ(type.axes[3], (Axis{AxisKind::kSpatial, 7, 1, {1, 1}}));
  EXPECT_EQ(type.element, Element::kReal);
  EXPECT_EQ(type.batch(), 2);
  EXPECT_EQ(type.channels(), 3);
  EXPECT_EQ(type.shape(), (Shape{2, 3, 5, 7}));
  EXPECT_EQ(to_string(type), "2x3x5x7");
}

TEST(ValueType, CountsItsSpatialAxes) {
  EXPECT_EQ(ValueType::image({1, 1, 4}).num_spatial(), 1);
  EXPECT_EQ(ValueType::image({1, 1, 4, 4, 4}).num_spatial(), 3);
  EXPECT_EQ(ValueType::image({1, 1, 4, 4, 4}).first_spatial(), 2);
  ValueType features = ValueType::image({2, 3, 4});
  features.axes.pop_back();
  EXPECT_EQ(features.num_spatial(), 0);
  EXPECT_EQ(features.first_spatial(), 2);
  ValueType labels = ValueType::image({2, 3, 4, 5});
  labels.axes.erase(labels.axes.begin() + 1);
  EXPECT_EQ(labels.num_spatial(), 2);
  EXPECT_EQ(labels.first_spatial(), 1);
}

TEST(ValueType, RefusesWhatIsNoImage) {
  EXPECT_EQ(refusal([] {
              ValueType::image({1, 3});
            }),
            "[input] 1x3 has 2 axes; give batch x channels x 1 to 3 spatial sizes, such as "
            "1x3x512x512");
  expect_refusal([] { ValueType::image({1, 3, 4, 4, 4, 4}); }, "has 6 axes");
  EXPECT_EQ(refusal([] {
              ValueType::image({1, 3, 0, 8});
            }),
            "[input] 1x3x0x8: size 0 of axis 2 must be at least 1");
  expect_refusal([] { ValueType::image({-1, 3, 8}); }, "size -1 of axis 0 must be at least 1");
}

}  // namespace
}  // namespace tessera::value_type_test
