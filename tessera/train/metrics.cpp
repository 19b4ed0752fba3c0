#include "tessera/train/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tessera/base/error.h"
#include "tessera/base/mean.h"
#include "tessera/geometry/box.h"
#include "tessera/kernels/confusion.h"

namespace tessera {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kFewClasses = 5;

double ratio(int64_t part, int64_t whole) {
  return whole == 0 ? kNaN : static_cast<double>(part) / static_cast<double>(whole);
}

/// Whether class `other` comes before class `own` when logits are sorted, the largest first.
bool comes_before(double other_logit, int64_t other, double own_logit, int64_t own) {
  if (std::isnan(other_logit) || std::isnan(own_logit))
    return std::isnan(other_logit) && (!std::isnan(own_logit) || other < own);
  return other_logit > own_logit || (other_logit == own_logit && other < own);
}

}  // namespace

ConfusionCounts::ConfusionCounts(int64_t num_classes) : num_classes_(num_classes) {
  if (num_classes < 1)
    throw_error<InvalidInput>("[metrics] {} classes; give at least 1", num_classes);
  counts_.resize(num_classes * num_classes);
}

void ConfusionCounts::add_logits(const at::Tensor& logits, const at::Tensor& labels,
                                 int64_t ignore_index) {
  count_logits(logits, labels, ignore_index, num_classes_, counts_);
}

void ConfusionCounts::add_predictions(const at::Tensor& predictions, const at::Tensor& labels,
                                      int64_t ignore_index) {
  count_predictions(predictions, labels, ignore_index, num_classes_, counts_);
}

void ConfusionCounts::add(const ConfusionCounts& other) {
  TESSERA_CHECK(num_classes_ == other.num_classes_, "{} and {} classes", num_classes_,
                other.num_classes_);
  std::transform(counts_.begin(), counts_.end(), other.counts_.begin(), counts_.begin(),
                 std::plus<>());
}

void ConfusionCounts::clear() { std::fill(counts_.begin(), counts_.end(), 0); }

int64_t ConfusionCounts::at(int64_t truth, int64_t prediction) const {
  return counts_[truth * num_classes_ + prediction];
}

int64_t ConfusionCounts::total() const {
  return std::accumulate(counts_.begin(), counts_.end(), int64_t{0});
}

std::vector<double> ConfusionCounts::as_doubles() const {
  return std::vector<double>(counts_.begin(), counts_.end());
}

void ConfusionCounts::assign(std::span<const double> counts) {
  TESSERA_CHECK(counts.size() == counts_.size(), "{} counts for {} classes", counts.size(),
                num_classes_);
  for (size_t i = 0; i < counts.size(); ++i) {
    TESSERA_CHECK(counts[i] >= 0 && counts[i] <= 0x1p53 && counts[i] == std::floor(counts[i]),
                  "count {}", counts[i]);
    counts_[i] = static_cast<int64_t>(counts[i]);
  }
}

int64_t count_among_largest(const at::Tensor& logits, const at::Tensor& labels,
                            int64_t ignore_index, int64_t most) {
  TESSERA_CHECK(logits.dim() == 2 && labels.dim() == 1 && labels.size(0) == logits.size(0),
                "{} logits for {} labels", to_string(logits.sizes().vec()),
                to_string(labels.sizes().vec()));
  const at::Tensor numbers = logits.to(at::kDouble).contiguous();
  const auto rows = numbers.accessor<double, 2>();
  int64_t hits = 0;
  for (int64_t image = 0; image < labels.size(0); ++image) {
    const int64_t truth = labels[image].item<int64_t>();
    if (truth == ignore_index) continue;
    int64_t before = 0;
    for (int64_t k = 0; k < logits.size(1); ++k)
      before += comes_before(rows[image][k], k, rows[image][truth], truth) ? 1 : 0;
    hits += before < most ? 1 : 0;
  }
  return hits;
}

Scores scores(const ConfusionCounts& counts, std::optional<int64_t> top5_hits) {
  const int64_t num_classes = counts.num_classes();
  Scores result;
  int64_t right = 0;
  for (int64_t k = 0; k < num_classes; ++k) {
    int64_t truth = 0, prediction = 0;
    for (int64_t other = 0; other < num_classes; ++other) {
      truth += counts.at(k, other);
      prediction += counts.at(other, k);
    }
    const int64_t both = counts.at(k, k);
    right += both;
    result.iou.push_back(ratio(both, truth + prediction - both));
    result.dice.push_back(ratio(2 * both, truth + prediction));
    result.precision.push_back(ratio(both, prediction));
    result.recall.push_back(ratio(both, truth));
  }
  result.accuracy = ratio(right, counts.total());
  if (top5_hits) result.top5 = ratio(*top5_hits, counts.total());
  result.mean_iou = mean_of_numbers(result.iou);
  result.mean_dice = mean_of_numbers(result.dice);
  result.mean_precision = mean_of_numbers(result.precision);
  result.mean_recall = mean_of_numbers(result.recall);
  return result;
}

const std::vector<ScoreName>& all_scores() {
  static const std::vector<ScoreName> all{{"accuracy", "accuracy", &Scores::accuracy},
                                          {"top5", "top-5", &Scores::top5},
                                          {"mean_iou", "mean IoU", &Scores::mean_iou},
                                          {"dice", "Dice", &Scores::mean_dice}};
  return all;
}

std::vector<ScoreName> scores_of(ScoredTask task, int64_t num_classes) {
  const std::vector<ScoreName>& all = all_scores();
  if (task == ScoredTask::kNumbers) return {};
  if (task == ScoredTask::kPixelClasses) return {all[0], all[2], all[3]};
  if (num_classes <= kFewClasses) return {all[0]};
  return {all[0], all[1]};
}

}  // namespace tessera
