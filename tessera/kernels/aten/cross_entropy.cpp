#include "tessera/kernels/cross_entropy.h"

#include "tessera/kernels/aten/tensors.h"

namespace tessera {
namespace {

at::Tensor class_weights(const CrossEntropyTerms& terms, const at::Tensor& logits) {
  if (terms.class_weights.empty()) return at::ones({logits.size(1)}, logits.options());
  return at::tensor(terms.class_weights, at::kDouble).to(logits.device(), logits.scalar_type());
}

/// The library's functions take no labels that are not legal.
at::Tensor without_illegal(const CrossEntropyTerms& terms, const at::Tensor& logits,
                           const at::Tensor& labels) {
  const at::Tensor is_legal = (labels >= 0).logical_and(labels < logits.size(1));
  return labels.masked_fill(is_legal.logical_not(), terms.ignore_index);
}

/// Sums of narrow numbers are taken in float32.
at::Tensor widened(const at::Tensor& logits) {
  return logits.element_size() < 4 ? logits.to(at::kFloat) : logits;
}

}  // namespace

namespace aten {

at::Tensor cross_entropy_sum(const CrossEntropyTerms& terms, const at::Tensor& scores,
                             const at::Tensor& labels) {
  const at::Tensor logits = widened(scores);
  const at::Tensor weights =
      terms.class_weights.empty() ? at::Tensor() : class_weights(terms, logits);
  return at::cross_entropy_loss(logits, without_illegal(terms, logits, labels), weights,
                                at::Reduction::None, terms.ignore_index, terms.label_smoothing)
      .sum(at::kDouble);
}

/// With p the softmax, y the label, s the smoothing and K classes of weights w:
///   hard w_y (p_k - [k = y]) + soft (p_k Σ w - w_k),  hard = 1 - s, soft = s / K.
void cross_entropy_gradient(const CrossEntropyTerms& terms, const at::Tensor& factor,
                            const at::Tensor& scores, const at::Tensor& all_labels,
                            const at::Tensor& gradient) {
  const at::Tensor logits = widened(scores), labels = without_illegal(terms, logits, all_labels);
  const double soft = terms.label_smoothing / static_cast<double>(logits.size(1));
  const at::Tensor ignored = (labels == terms.ignore_index).unsqueeze(1);
  const at::Tensor label = labels.unsqueeze(1).masked_fill(ignored, 0);
  const at::Tensor weights = class_weights(terms, logits);
  const at::Tensor of_label = weights.index({label}) * (1 - terms.label_smoothing);
  const at::Tensor slopes = at::softmax(logits, 1) * (of_label + weights.sum() * soft);
  slopes.scatter_add_(1, label, -of_label);  // one place for each pixel
  if (soft > 0) slopes.sub_(along_axis(weights, 1, logits.dim()) * soft);
  gradient.copy_((slopes * factor.to(slopes.scalar_type())).masked_fill_(ignored, 0));
}

}  // namespace aten

const CrossEntropyKernels CrossEntropyKernels::kAten{
    .cross_entropy_sum = aten::cross_entropy_sum,
    .cross_entropy_gradient = aten::cross_entropy_gradient};

}  // namespace tessera
