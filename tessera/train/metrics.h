#pragma once
// Quality of a classification or segmentation, from one table of counts: how many pixels of class t
// were taken for class p. Each rank counts the pixels that it owns; tables add up exactly over
// pieces, batches and ranks (whole numbers below 2^53 are exact in doubles), so that the scores do
// not depend on the placement.
//
// Which of the scores are shown depends on the targets: a classifier has no IoU, and numbers to be
// met have none of them.
//
// Example:
//   ConfusionCounts counts(num_classes);
//   counts.add_logits(executor.result(logits), labels, ignore_index);   // for each owned piece
//   std::vector<double> sums = counts.as_doubles();                     // all-reduce: sum
//   counts.assign(sums);
//   scores(counts).mean_iou;

#include <ATen/ATen.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tessera {

class ConfusionCounts {
 public:
  explicit ConfusionCounts(int64_t num_classes);

  /// Logits are batch x classes x space (or batch x classes), labels int64 without the classes; any
  /// strides. The prediction is the class with the largest logit, the lowest such class on a tie;
  /// NaN counts as the largest. Pixels labelled `ignore_index` do not count. Throws InvalidInput
  /// for another label outside [0, classes).
  void add_logits(const at::Tensor& logits, const at::Tensor& labels, int64_t ignore_index);
  /// The same from predicted classes, int64 in the shape of the labels.
  void add_predictions(const at::Tensor& predictions, const at::Tensor& labels,
                       int64_t ignore_index);
  void add(const ConfusionCounts& other);
  void clear();

  int64_t num_classes() const { return num_classes_; }
  /// Pixels of class `truth` that were taken for `prediction`.
  int64_t at(int64_t truth, int64_t prediction) const;
  int64_t total() const;

  /// For a sum over ranks: row-major, one row per true class.
  std::vector<double> as_doubles() const;
  void assign(std::span<const double> counts);
  bool operator==(const ConfusionCounts&) const = default;

 private:
  int64_t num_classes_;
  std::vector<int64_t> counts_;
};

/// Of the images in `logits` (batch x classes), those whose label is among the `most` largest
/// logits, where ties go to the lower class and NaN is the largest, as in ConfusionCounts. Ignored
/// labels do not count.
int64_t count_among_largest(const at::Tensor& logits, const at::Tensor& labels,
                            int64_t ignore_index, int64_t most);

/// With TP, FP and FN of a class: IoU = TP / (TP + FP + FN), Dice = 2 TP / (2 TP + FP + FN),
/// precision = TP / (TP + FP), recall = TP / (TP + FN). A score of a class whose denominator is 0
/// is NaN, and does not count in the means: a class that is neither in the truth nor in the
/// prediction has none at all. Where no pixel counts, everything is NaN.
struct Scores {
  double accuracy = 0;
  double top5 = std::numeric_limits<double>::quiet_NaN();  // NaN: not counted
  double mean_iou = 0;
  double mean_dice = 0;
  double mean_precision = 0;
  double mean_recall = 0;
  std::vector<double> iou = {};  // per class, and so are the others
  std::vector<double> dice = {};
  std::vector<double> precision = {};
  std::vector<double> recall = {};
};
/// `top5_hits`: of as many images as the counts have.
Scores scores(const ConfusionCounts& counts, std::optional<int64_t> top5_hits = std::nullopt);

/// What the targets of a data set are.
enum class ScoredTask { kNumbers, kImageClasses, kPixelClasses };

/// A score as files and as people call it.
struct ScoreName {
  const char* name;
  const char* words;
  double Scores::*value;
};
/// Those that make sense, in the order in which they are shown. Of five classes or fewer, all
/// labels are among the first five.
std::vector<ScoreName> scores_of(ScoredTask task, int64_t num_classes);
/// All of them, of any targets.
const std::vector<ScoreName>& all_scores();

}  // namespace tessera
