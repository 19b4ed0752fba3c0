#pragma once
// Quality of a classification or segmentation, from one table of counts: how many pixels of class t
// were taken for class p. Each rank counts the pixels that it owns; tables add up exactly over
// pieces, batches and ranks (whole numbers below 2^53 are exact in doubles), so that the scores do
// not depend on the placement.
//
// Example:
//   ConfusionCounts counts(num_classes);
//   counts.add_logits(executor.result(logits), labels, ignore_index);   // for each owned piece
//   std::vector<double> sums = counts.as_doubles();                     // all-reduce: sum
//   counts.assign(sums);
//   scores(counts).mean_iou;

#include <ATen/ATen.h>

#include <cstdint>
#include <span>
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

/// With TP, FP and FN of a class: IoU = TP / (TP + FP + FN), Dice = 2 TP / (2 TP + FP + FN). A
/// class that is neither in the truth nor in the prediction has neither: its entry is NaN, and it
/// does not count in the means. Where no pixel counts at all, everything is NaN.
struct Scores {
  double accuracy = 0;
  double mean_iou = 0;
  double mean_dice = 0;
  std::vector<double> iou;   // per class
  std::vector<double> dice;  // per class
};
Scores scores(const ConfusionCounts& counts);

}  // namespace tessera
