#include "tessera/train/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tessera/base/error.h"
#include "tessera/kernels/confusion.h"

namespace tessera {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double ratio(int64_t part, int64_t whole) {
  return whole == 0 ? kNaN : static_cast<double>(part) / static_cast<double>(whole);
}

/// Over the entries that are numbers; NaN where there are none.
double mean_of_numbers(const std::vector<double>& values) {
  double sum = 0;
  int64_t count = 0;
  for (double value : values)
    if (!std::isnan(value)) {
      sum += value;
      ++count;
    }
  return count == 0 ? kNaN : sum / static_cast<double>(count);
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

Scores scores(const ConfusionCounts& counts) {
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
  }
  result.accuracy = ratio(right, counts.total());
  result.mean_iou = mean_of_numbers(result.iou);
  result.mean_dice = mean_of_numbers(result.dice);
  return result;
}

}  // namespace tessera
