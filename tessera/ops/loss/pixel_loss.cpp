#include "tessera/ops/loss/pixel_loss.h"

#include "tessera/base/error.h"
#include "tessera/kernels/label_sum.h"

namespace tessera {

ValueType PixelLoss::infer_type(std::span<const ValueType> inputs) const {
  const ValueType &prediction = inputs[0], &target = inputs[1];
  if (prediction.element != Element::kReal || prediction.num_axes() < 2 ||
      prediction.axes[1].kind != AxisKind::kChannel || prediction.channels() < 1)
    throw_error<InvalidInput>("the prediction is {}; give real numbers, batch x classes x space",
                              to_string(prediction));
  if (!std::isfinite(weight_))
    throw_error<InvalidInput>("weight {} must be a finite number", weight_);
  check_options(prediction);
  if (!takes(target.element)) {
    if (target.element == Element::kReal)
      throw_error<InvalidInput>("the target holds real numbers; give integer labels");
    throw_error<InvalidInput>("the target holds labels; give real numbers of the shape {}",
                              to_string(prediction));
  }
  ValueType output = prediction;
  output.axes.erase(output.axes.begin() + 1);
  const ValueType& legal = target.element == Element::kReal ? prediction : output;
  if (target.shape() != legal.shape())
    throw_error<InvalidInput>("the target is {}; a prediction of {} needs {}", to_string(target),
                              to_string(prediction), to_string(legal));
  return output;
}

Box PixelLoss::needed(int input, const Box& out, const NodeTypes& types) const {
  if (input == 1 && has_labels(types)) return out;
  Box box{out[0], {0, types.inputs[0].channels()}};
  for (int axis = 1; axis < out.num_axes(); ++axis) box.push_back(out[axis]);
  return box;
}

std::string PixelLoss::slashed(const std::vector<double>& factors) {
  std::string text;
  for (double factor : factors) text += fmt::format("{}{}", text.empty() ? "" : "/", factor);
  return text;
}

std::string PixelLoss::with_weight(std::string text) const {
  if (weight_ == 1) return text;
  return fmt::format("{}{}weight {}", text, text.empty() ? "" : ", ", weight_);
}

LossOperands PixelLoss::operands(const KernelArgs& args) const {
  return {args.inputs[0].view(needed(0, args.out_box, *args.types)),
          args.inputs[1].view(needed(1, args.out_box, *args.types)), ignore_index_};
}

at::Tensor PixelLoss::sum_over_labels(const KernelArgs& args,
                                      const std::vector<double>& weights) const {
  const at::Tensor sum = at::zeros({}, args.piece_statistics.options());
  if (args.out_box.empty()) return sum;
  const at::Tensor labels = args.inputs[1].view(args.out_box);
  const bool is_kept = args.illegal_label.defined();
  const at::Tensor illegal = is_kept ? args.illegal_label : at::zeros({}, labels.options());
  tessera::sum_over_labels(labels, num_labels(args.types->inputs[0].channels()), ignore_index_,
                           weights, sum, illegal);
  if (!is_kept) refuse_label(illegal.item<int64_t>(), *args.name, *args.types);
  return sum;
}

void PixelLoss::refuse_label(int64_t label, const std::string& name, const NodeTypes& types) const {
  if (label == 0) return;
  throw_error<InvalidInput>("[{} {}] label {} is not in [0, {}) and is not the ignored label {}",
                            kind(), name, label, num_labels(types.inputs[0].channels()),
                            ignore_index_);
}

}  // namespace tessera
