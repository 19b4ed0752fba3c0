#include "tessera/kernels/confusion.h"

#include "tessera/kernels/classes.h"

namespace tessera {

namespace aten {

/// The host counts; classes are found where the scores are, and cross as one number for a pixel.
void count_logits(const at::Tensor& logits, const at::Tensor& labels, int64_t ignore_index,
                  int64_t num_classes, std::vector<int64_t>& counts) {
  if (logits.dim() != labels.dim() + 1 || logits.size(1) != num_classes)  // which it explains
    return ConfusionKernels::kCpu.count_logits(logits.cpu(), labels.cpu(), ignore_index,
                                               num_classes, counts);
  ConfusionKernels::kCpu.count_predictions(classes_with_largest_score(logits).cpu(), labels.cpu(),
                                           ignore_index, num_classes, counts);
}

void count_predictions(const at::Tensor& predictions, const at::Tensor& labels,
                       int64_t ignore_index, int64_t num_classes, std::vector<int64_t>& counts) {
  ConfusionKernels::kCpu.count_predictions(predictions.cpu(), labels.cpu(), ignore_index,
                                           num_classes, counts);
}

}  // namespace aten

const ConfusionKernels ConfusionKernels::kAten{.count_logits = aten::count_logits,
                                               .count_predictions = aten::count_predictions};

}  // namespace tessera
