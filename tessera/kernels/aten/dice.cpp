#include "tessera/kernels/aten/tensors.h"
#include "tessera/kernels/loss.h"

namespace tessera {
namespace {

using Activation = DiceTerms::Activation;

at::Tensor activated(Activation activation, const at::Tensor& scores) {
  if (activation == Activation::kSigmoid) return at::sigmoid(scores);
  return activation == Activation::kSoftmax ? at::softmax(scores, 1) : scores;
}

/// Takes gradients from probabilities to scores.
at::Tensor through_activation(Activation activation, const at::Tensor& p, const at::Tensor& grad) {
  if (activation == Activation::kSigmoid) return p * (1 - p) * grad;
  if (activation == Activation::kNone) return grad;
  return p * (grad - (p * grad).sum(1, /*keepdim=*/true));
}

/// Probabilities and targets in float64, batch x channels x pixels, and which pixels do not count.
struct Probabilities {
  at::Tensor p, target;
  at::Tensor ignored;  // with one channel

  Probabilities(const DiceTerms& terms, const LossOperands& operands) {
    const int64_t batch = operands.scores.size(0), channels = operands.scores.size(1);
    p = activated(terms.activation, operands.scores.to(at::kDouble).reshape({batch, channels, -1}));
    if (operands.target.is_floating_point()) {
      target = operands.target.to(at::kDouble).reshape({batch, channels, -1});
      ignored = at::zeros({1, 1, 1}, p.options().dtype(at::kBool));
      return;
    }
    const at::Tensor labels = operands.target.reshape({batch, 1, -1});
    ignored = labels == operands.ignore_index;
    const at::Tensor is_named =
        channels == 1 ? labels : labels == aten::along_axis(aten::count_up(0, channels, p), 1, 3);
    target = is_named.to(at::kDouble);
  }
};

}  // namespace

namespace aten {

at::Tensor dice_overlaps(const DiceTerms& terms, const LossOperands& operands) {
  const Probabilities pixels(terms, operands);
  const auto sum = [&](const at::Tensor& of_pixels) {
    return of_pixels.masked_fill(pixels.ignored, 0).slice(1, terms.first_class).sum(2);
  };
  const auto &p = pixels.p, &t = pixels.target;
  return at::stack({sum(p * t), sum(terms.squared ? p * p + t * t : p + t), sum(at::ones_like(p))},
                   2);
}

void dice_gradient(const DiceTerms& terms, const LossOperands& operands, const at::Tensor& pulls,
                   const at::Tensor& gradient) {
  const Probabilities pixels(terms, operands);
  const at::Tensor of_classes = pulls.to(gradient.device()).unsqueeze(2);
  const at::Tensor pull = of_classes.select(3, 0), push = of_classes.select(3, 1);
  const auto in_loss = [&](const at::Tensor& of_channels) {
    return of_channels.slice(1, terms.first_class);
  };
  const at::Tensor slopes = at::zeros_like(pixels.p);
  const at::Tensor of_sizes = terms.squared ? in_loss(pixels.p) * 2 * push : push;
  in_loss(slopes).copy_(pull * in_loss(pixels.target) + of_sizes);
  const at::Tensor of_scores = through_activation(terms.activation, pixels.p, slopes);
  gradient.copy_(of_scores.masked_fill(pixels.ignored, 0).view(gradient.sizes()));
}

}  // namespace aten

const DiceKernels DiceKernels::kAten{.dice_overlaps = aten::dice_overlaps,
                                     .dice_gradient = aten::dice_gradient};

}  // namespace tessera
