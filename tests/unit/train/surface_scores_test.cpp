// Distances between outlines against values of SciPy's distance transform and NumPy's percentiles.

#include "tessera/train/surface_scores.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tessera::surface_scores_test {
namespace {

using at::indexing::Slice;

at::Tensor square(int64_t top, int64_t bottom, int64_t left, int64_t right) {
  at::Tensor map = at::zeros({8, 8}, at::kLong);
  map.index_put_({Slice(top, bottom), Slice(left, right)}, 1);
  return map;
}

TEST(SurfaceScores, AreThoseOfScipy) {
  const at::Tensor truth = square(1, 6, 1, 6), prediction = square(2, 7, 2, 8);
  const auto plain = surface_scores(prediction, truth, {.num_classes = 2});
  EXPECT_NEAR(plain[0].hausdorff95, 2.1499999999999986, 1e-12);
  EXPECT_NEAR(plain[0].surface_dice, 0.9154929577464789, 1e-12);
  EXPECT_NEAR(plain[1].hausdorff95, 2.035410196624968, 1e-12);
  EXPECT_NEAR(plain[1].surface_dice, 0.7647058823529411, 1e-12);
  const auto spaced = surface_scores(prediction, truth, {.num_classes = 2, .spacing = {2.5, 0.5}});
  EXPECT_NEAR(spaced[0].hausdorff95, 3.0, 1e-12);
  EXPECT_NEAR(spaced[0].surface_dice, 0.8309859154929577, 1e-12);
  EXPECT_NEAR(spaced[1].hausdorff95, 2.570970653812021, 1e-12);
  EXPECT_NEAR(spaced[1].surface_dice, 0.6764705882352942, 1e-12);
}

TEST(SurfaceScores, OfEqualMasksArePerfect) {
  at::Tensor cube = at::zeros({5, 6, 7}, at::kLong);
  cube.index_put_({Slice(1, 4), Slice(2, 5), Slice(0, 3)}, 2);
  const auto scores = surface_scores(cube, cube, {.num_classes = 3});
  EXPECT_EQ(scores[2].hausdorff95, 0);
  EXPECT_EQ(scores[2].surface_dice, 1);
  EXPECT_TRUE(std::isnan(scores[1].hausdorff95) && std::isnan(scores[1].surface_dice));
}

TEST(SurfaceScores, OfAClassThatIsMissing) {
  const auto scores =
      surface_scores(at::zeros({8, 8}, at::kLong), square(1, 3, 1, 3), {.num_classes = 2});
  EXPECT_TRUE(std::isnan(scores[1].hausdorff95));
  EXPECT_EQ(scores[1].surface_dice, 0);
}

TEST(SurfaceScores, IgnoredPixelsAreOfNoClass) {
  at::Tensor truth = square(1, 6, 1, 6);
  at::Tensor prediction = truth.clone();
  prediction.index_put_({0, 0}, 1);
  EXPECT_GT(surface_scores(prediction, truth, {.num_classes = 2})[1].surface_dice, 0);
  EXPECT_LT(surface_scores(prediction, truth, {.num_classes = 2})[1].surface_dice, 1);
  truth.index_put_({0, 0}, -100);
  EXPECT_EQ(surface_scores(prediction, truth, {.num_classes = 2})[1].surface_dice, 1);
}

TEST(SurfaceScores, MeansLeaveOutWhatIsNotANumber) {
  MeanSurfaceScores means, others;
  EXPECT_TRUE(means.means().empty());
  means.add(std::vector<SurfaceScores>{{1, 0.5}, {NAN, NAN}});
  others.add(std::vector<SurfaceScores>{{4, 1}, {NAN, 0}});
  means.add(others);
  EXPECT_EQ(means.means()[0].hausdorff95, 2.5);
  EXPECT_EQ(means.means()[0].surface_dice, 0.75);
  EXPECT_TRUE(std::isnan(means.means()[1].hausdorff95));
  EXPECT_EQ(means.means()[1].surface_dice, 0);
}

TEST(Percentile, InterpolatesAsNumpy) {
  EXPECT_DOUBLE_EQ(percentile({4, 1, 3, 2}, 95), 3.85);
  EXPECT_DOUBLE_EQ(percentile({4, 1, 3, 2}, 50), 2.5);
  EXPECT_DOUBLE_EQ(percentile({7}, 95), 7);
  EXPECT_DOUBLE_EQ(percentile({1, 2}, 100), 2);
}

}  // namespace
}  // namespace tessera::surface_scores_test
