#include "tessera/kernels/aten/tensors.h"
#include "tessera/kernels/loss.h"

namespace tessera {
namespace {

using Form = ElementLoss::Form;

/// What an element costs, or how that grows with the score.
enum class Wanted { kValue, kSlope };

/// Scores and targets in float64, and which elements do not count.
struct Elements {
  at::Tensor x, t;
  at::Tensor ignored;  // beside them; undefined: none

  explicit Elements(const LossOperands& operands) {
    x = operands.scores.to(at::kDouble);
    if (operands.target.is_floating_point()) {
      t = operands.target.to(at::kDouble);
      return;
    }
    const at::Tensor labels = operands.target.unsqueeze(1);
    ignored = labels == operands.ignore_index;
    const at::Tensor named =
        x.size(1) == 1 ? labels
                       : labels == aten::along_axis(aten::count_up(0, x.size(1), x), 1, x.dim());
    t = named.to(at::kDouble).masked_fill(ignored, 0);
  }
  at::Tensor counted(const at::Tensor& of_elements) const {
    return ignored.defined() ? of_elements.masked_fill(ignored, 0) : of_elements;
  }
};

at::Tensor regression(const ElementLoss& loss, const Elements& elements, Wanted wanted) {
  const at::Tensor d = elements.x - elements.t, size = d.abs();
  const double knee = loss.parameter;
  const bool value = wanted == Wanted::kValue;
  if (loss.form == Form::kAbsolute) return value ? size : d.sign();
  if (loss.form == Form::kSmoothAbsolute)
    return value ? at::where(size < knee, d * d / (2 * knee), size - knee / 2)
                 : at::where(size < knee, d / knee, d.sign());
  if (loss.form == Form::kHuber)
    return value ? at::where(size <= knee, d * d / 2, (size - knee / 2) * knee)
                 : at::where(size <= knee, d, d.sign() * knee);
  return value ? d * d : 2 * d;
}

at::Tensor logistic(const ElementLoss& loss, const Elements& elements, Wanted wanted) {
  const at::Tensor &x = elements.x, &t = elements.t;
  at::Tensor weight = at::ones({1}, x.options());
  if (!loss.channel_weights.empty())
    weight =
        aten::along_axis(at::tensor(loss.channel_weights, at::kDouble).to(x.device()), 1, x.dim());
  if (wanted == Wanted::kSlope) return (1 - t) * at::sigmoid(x) - weight * t * at::sigmoid(-x);
  return (1 - t) * x - (1 - t + weight * t) * at::log_sigmoid(x);
}

/// With m = (1 - t) p + t (1 - p) and c the cross entropy: m^gamma c, and m^gamma (c' + gamma c
/// m'/m), of which m'/m is taken in a form that stays finite for t = 0 and 1.
at::Tensor sigmoid_focal(const ElementLoss& loss, const Elements& elements, Wanted wanted) {
  const at::Tensor &x = elements.x, &t = elements.t;
  const at::Tensor yes = at::sigmoid(x), no = at::sigmoid(-x);
  const at::Tensor m = (1 - t) * yes + t * no, c = (1 - t) * x - at::log_sigmoid(x);
  at::Tensor weight = m.pow(loss.parameter);
  if (loss.alpha >= 0) weight = weight * (loss.alpha * t + (1 - loss.alpha) * (1 - t));
  if (wanted == Wanted::kValue) return weight * c;
  const at::Tensor between = yes * no * (1 - 2 * t) / m;
  const at::Tensor growth = at::where(t == 0, no, at::where(t == 1, -yes, between));
  return weight * ((1 - t) * yes - t * no + loss.parameter * c * growth);
}

/// With u = 1 - q_t and L = -log q_t: u^gamma L, and (q_k - [k = t]) u^gamma (1 + gamma q_t L/u),
/// where L/u tends to 1 as u goes to 0. The value is that of a pixel, at the channel of its label.
at::Tensor softmax_focal(const ElementLoss& loss, const Elements& elements, Wanted wanted) {
  const at::Tensor is_named = elements.t == 1;
  const at::Tensor logs = at::log_softmax(elements.x, 1), q = logs.exp();
  const auto of_pixel = [](const at::Tensor& image) { return image.sum(1, /*keepdim=*/true); };
  const at::Tensor u = of_pixel(q.masked_fill(is_named, 0));
  const at::Tensor from_sum = -of_pixel(logs.masked_fill(is_named.logical_not(), 0));
  const at::Tensor minus_log = at::where(u < 0.5, -at::log1p(-u), from_sum);
  at::Tensor weight = u.pow(loss.parameter);
  if (!loss.channel_weights.empty()) {
    const at::Tensor table = at::tensor(loss.channel_weights, at::kDouble).to(q.device());
    weight = weight * of_pixel(elements.t * aten::along_axis(table, 1, q.dim()));
  }
  if (wanted == Wanted::kValue) return elements.t * (weight * minus_log);
  const at::Tensor steepness = at::where(u > 0, minus_log / u, at::ones_like(u));
  weight = weight * (1 + loss.parameter * (1 - u) * steepness);
  return weight * at::where(is_named, -u, q);
}

at::Tensor of_elements(const ElementLoss& loss, const Elements& elements, Wanted wanted) {
  switch (loss.form) {
    case Form::kLogistic:
      return logistic(loss, elements, wanted);
    case Form::kSigmoidFocal:
      return sigmoid_focal(loss, elements, wanted);
    case Form::kSoftmaxFocal:
      return softmax_focal(loss, elements, wanted);
    default:
      return regression(loss, elements, wanted);
  }
}

}  // namespace

namespace aten {

at::Tensor loss_sum(const ElementLoss& loss, const LossOperands& operands) {
  const Elements elements(operands);
  return elements.counted(of_elements(loss, elements, Wanted::kValue)).sum();
}

void loss_gradient(const ElementLoss& loss, const at::Tensor& factor, const LossOperands& operands,
                   const at::Tensor& gradient) {
  const Elements elements(operands);
  gradient.copy_(elements.counted(of_elements(loss, elements, Wanted::kSlope) * factor));
}

}  // namespace aten

const LossKernels LossKernels::kAten{.loss_sum = aten::loss_sum,
                                     .loss_gradient = aten::loss_gradient};

}  // namespace tessera
