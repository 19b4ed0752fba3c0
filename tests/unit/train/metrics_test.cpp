// Counts against a plain count over argmax, on all kinds of views; scores against hand calculation.

#include "tessera/train/metrics.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/unit/refusal.h"

namespace tessera::metrics_test {
namespace {

constexpr int64_t kIgnored = 255;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Counted one by one from dense copies.
ConfusionCounts plain_count(const at::Tensor& logits, const at::Tensor& labels) {
  const int64_t num_classes = logits.size(1);
  const at::Tensor truth = labels.contiguous().view(-1);
  const at::Tensor prediction = logits.argmax(1).contiguous().view(-1);
  std::vector<double> counts(num_classes * num_classes);
  for (int64_t p = 0; p < truth.numel(); ++p)
    if (truth[p].item<int64_t>() != kIgnored)
      ++counts[truth[p].item<int64_t>() * num_classes + prediction[p].item<int64_t>()];
  ConfusionCounts result(num_classes);
  result.assign(counts);
  return result;
}

at::Tensor random_labels(at::IntArrayRef shape, int64_t num_classes) {
  const at::Tensor labels = at::randint(num_classes, shape, at::kLong);
  return labels.masked_fill(at::rand(shape) < 0.1, kIgnored);
}

void expect_counted(const at::Tensor& logits, const at::Tensor& labels) {
  ConfusionCounts counts(logits.size(1));
  counts.add_logits(logits, labels, kIgnored);
  EXPECT_EQ(counts, plain_count(logits, labels)) << logits.sizes() << " " << logits.strides();
  ConfusionCounts from_classes(logits.size(1));
  from_classes.add_predictions(logits.argmax(1), labels, kIgnored);
  EXPECT_EQ(from_classes, counts);
}

TEST(Confusion, CountsEveryShape) {
  at::manual_seed(1);
  for (at::ScalarType real : {at::kFloat, at::kDouble}) {
    expect_counted(at::randn({6, 5}, real), random_labels({6}, 5));
    expect_counted(at::randn({2, 3, 700}, real), random_labels({2, 700}, 3));
    expect_counted(at::randn({2, 4, 9, 11}, real), random_labels({2, 9, 11}, 4));
    expect_counted(at::randn({1, 2, 5, 6, 7}, real), random_labels({1, 5, 6, 7}, 2));
    expect_counted(at::randn({2, 1, 3, 3}, real), random_labels({2, 3, 3}, 1));
  }
}

TEST(Confusion, CountsStridedViews) {
  at::manual_seed(2);
  const at::Tensor logits = at::randn({2, 3, 20, 300}), labels = random_labels({2, 20, 300}, 3);
  using at::indexing::Slice;
  const at::Tensor part = labels.index({Slice(), Slice(3, 17), Slice(5, 290)});
  expect_counted(logits.index({Slice(), Slice(), Slice(3, 17), Slice(5, 290)}), part);
  expect_counted(logits.contiguous(at::MemoryFormat::ChannelsLast), labels);
  expect_counted(logits.transpose(2, 3), labels.transpose(1, 2));
  expect_counted(logits.slice(3, 0, 300, 3), labels.slice(2, 0, 300, 3));
  expect_counted(logits.slice(2, 4, 4), labels.slice(1, 4, 4));  // a rank that owns nothing
}

TEST(Confusion, PiecesAddUpToTheWhole) {
  at::manual_seed(4);
  const at::Tensor logits = at::randn({1, 5, 64, 64}), labels = random_labels({1, 64, 64}, 5);
  std::vector<double> sum(25);
  for (int64_t begin : {0, 16, 50}) {
    const int64_t end = begin == 0 ? 16 : begin == 16 ? 50 : 64;
    ConfusionCounts piece(5);
    piece.add_logits(logits.slice(2, begin, end), labels.slice(1, begin, end), kIgnored);
    const std::vector<double> counts = piece.as_doubles();
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += counts[i];
  }
  ConfusionCounts merged(5), whole(5), twice(5);
  merged.assign(sum);
  whole.add_logits(logits, labels, kIgnored);
  EXPECT_EQ(merged, whole);
  twice.add(whole);
  twice.add(whole);
  EXPECT_EQ(twice.total(), 2 * whole.total());
  twice.clear();
  EXPECT_EQ(twice.total(), 0);
}

TEST(Confusion, DoesNotDependOnThreads) {
  at::manual_seed(5);
  const at::Tensor logits = at::randn({2, 3, 200, 200}), labels = random_labels({2, 200, 200}, 3);
  const int threads = at::get_num_threads();
  ConfusionCounts one(3), many(3);
  at::set_num_threads(1);
  one.add_logits(logits, labels, kIgnored);
  at::set_num_threads(4);
  many.add_logits(logits, labels, kIgnored);
  at::set_num_threads(threads);
  EXPECT_EQ(one, many);
}

TEST(Confusion, TiesGoToTheLowestClassAndNanIsLargest) {
  const at::Tensor logits =
      at::tensor({1., 1., 0., 0., 2., 2., 5., kNaN, 9., kNaN, 1., kNaN, 1., 2., kNaN}).view({5, 3});
  ConfusionCounts counts(3);
  counts.add_logits(logits, at::zeros({5}, at::kLong), kIgnored);
  EXPECT_EQ(counts.at(0, 0), 2);  // the first tie, and NaN in front of NaN
  EXPECT_EQ(counts.at(0, 1), 2);
  EXPECT_EQ(counts.at(0, 2), 1);
}

TEST(Confusion, RefusesWhatItCannotCount) {
  ConfusionCounts counts(3);
  const at::Tensor logits = at::randn({1, 3, 4}), labels = at::zeros({1, 4}, at::kLong);
  labels[0][2] = 3;
  expect_refusal([&] { counts.add_logits(logits, labels, kIgnored); },
                 "label 3 is not in [0, 3) and is not the ignored label 255");
  EXPECT_EQ(counts.total(), 0) << "half a tensor was counted";
  labels[0][2] = -1;
  expect_refusal([&] { counts.add_logits(logits, labels, kIgnored); }, "label -1");
  counts.add_logits(logits, labels, -1);
  EXPECT_EQ(counts.total(), 3);
  expect_refusal(
      [&] {
        counts.add_logits(at::randn({1, 2, 4}), labels, -1);
      },
      "logits are 1x2x4; labels 1x4 and 3 classes need 1x3x4");
  expect_refusal([&] { counts.add_logits(logits, labels.to(at::kInt), -1); }, "give int64");
  expect_refusal([&] { counts.add_predictions(labels, labels, -7); }, "prediction -1");
  expect_refusal([] { ConfusionCounts none(0); }, "0 classes");
}

TEST(Scores, ByHand) {
  // truth \ prediction:   0  1  2  3
  //                  0:   6  2  0  0      IoU 6/9, Dice 12/15
  //                  1:   1  3  0  0      IoU 3/6, Dice 6/9
  //                  2:   0  0  0  0      absent from both
  //                  3:   0  0  0  0
  ConfusionCounts counts(4);
  counts.assign(std::vector<double>{6, 2, 0, 0, 1, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  const Scores result = scores(counts);
  EXPECT_DOUBLE_EQ(result.accuracy, 9.0 / 12);
  EXPECT_DOUBLE_EQ(result.iou[0], 6.0 / 9);
  EXPECT_DOUBLE_EQ(result.iou[1], 0.5);
  EXPECT_TRUE(std::isnan(result.iou[2]));
  EXPECT_TRUE(std::isnan(result.dice[3]));
  EXPECT_DOUBLE_EQ(result.dice[0], 12.0 / 15);
  EXPECT_DOUBLE_EQ(result.precision[0], 6.0 / 7);
  EXPECT_DOUBLE_EQ(result.recall[0], 6.0 / 8);
  EXPECT_DOUBLE_EQ(result.precision[1], 3.0 / 5);
  EXPECT_DOUBLE_EQ(result.recall[1], 3.0 / 4);
  EXPECT_TRUE(std::isnan(result.precision[2]) && std::isnan(result.recall[2]));
  EXPECT_DOUBLE_EQ(result.mean_precision, (6.0 / 7 + 3.0 / 5) / 2);
  EXPECT_DOUBLE_EQ(result.mean_recall, (6.0 / 8 + 3.0 / 4) / 2);
  EXPECT_TRUE(std::isnan(result.top5)) << "nobody has counted it";
  EXPECT_DOUBLE_EQ(scores(counts, 9).top5, 9.0 / 12);
  EXPECT_DOUBLE_EQ(result.mean_iou, (6.0 / 9 + 0.5) / 2);
  EXPECT_DOUBLE_EQ(result.mean_dice, (12.0 / 15 + 6.0 / 9) / 2);
}

TEST(Scores, AClassThatIsOnlyPredictedCountsAsZero) {
  ConfusionCounts counts(2);
  counts.assign(std::vector<double>{3, 1, 0, 0});
  EXPECT_DOUBLE_EQ(scores(counts).iou[1], 0);
  EXPECT_DOUBLE_EQ(scores(counts).mean_iou, 0.375);
}

TEST(Scores, AClassThatIsNeverPredictedHasNoPrecision) {
  ConfusionCounts counts(2);
  counts.assign(std::vector<double>{3, 0, 2, 0});
  EXPECT_TRUE(std::isnan(scores(counts).precision[1]));
  EXPECT_DOUBLE_EQ(scores(counts).recall[1], 0);
  EXPECT_DOUBLE_EQ(scores(counts).mean_precision, 0.6);
}

TEST(Scores, AreThoseThatMakeSense) {
  const auto names = [](ScoredTask task, int64_t classes) {
    std::string text;
    for (const ScoreName& score : scores_of(task, classes)) text += std::string(score.name) + " ";
    return text;
  };
  EXPECT_EQ(names(ScoredTask::kNumbers, 2), "");
  EXPECT_EQ(names(ScoredTask::kPixelClasses, 9), "accuracy mean_iou dice ");
  EXPECT_EQ(names(ScoredTask::kImageClasses, 5), "accuracy ");
  EXPECT_EQ(names(ScoredTask::kImageClasses, 6), "accuracy top5 ");
}

TEST(AmongLargest, CountsAsSortingDoes) {
  at::manual_seed(6);
  const at::Tensor logits = at::randn({200, 10});
  const at::Tensor labels = random_labels({200}, 10);
  const at::Tensor best = std::get<1>(logits.topk(5, 1));
  const at::Tensor hits = best.eq(labels.unsqueeze(1)).any(1);
  EXPECT_EQ(count_among_largest(logits, labels, kIgnored, 5), hits.sum().item<int64_t>());
  EXPECT_LT(hits.sum().item<int64_t>(), 150);
}

TEST(AmongLargest, TiesGoToTheLowerClassAndNanIsLargest) {
  const at::Tensor logits = at::tensor({1., 1., 1., 0., kNaN, 5.}).view({2, 3});
  EXPECT_EQ(count_among_largest(logits, at::tensor({1, 2}, at::kLong), kIgnored, 2), 2);
  EXPECT_EQ(count_among_largest(logits, at::tensor({2, 0}, at::kLong), kIgnored, 2), 0);
  EXPECT_EQ(count_among_largest(logits, at::tensor({0, 1}, at::kLong), kIgnored, 1), 2);
}

TEST(Scores, WithoutPixelsThereAreNone) {
  const Scores none = scores(ConfusionCounts(3));
  EXPECT_TRUE(std::isnan(none.accuracy));
  EXPECT_TRUE(std::isnan(none.mean_iou));
  EXPECT_TRUE(std::isnan(none.mean_dice));
}

}  // namespace
}  // namespace tessera::metrics_test
