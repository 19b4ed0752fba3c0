#include "tessera/ops/loss/feature_loss.h"

#include "tessera/base/error.h"

namespace tessera {

ValueType FeatureLoss::infer_type(std::span<const ValueType> inputs) const {
  for (const ValueType& input : inputs)
    if (input.element != Element::kReal || input.num_axes() < 2 ||
        input.axes[1].kind != AxisKind::kChannel || input.channels() < 1)
      throw_error<InvalidInput>("an input is {}; give real numbers, batch x channels x space",
                                to_string(input));
  check_step_function(weight_, "weight");
  check_inputs(inputs);
  ValueType output = inputs[0];
  output.axes.erase(output.axes.begin() + 1);
  return output;
}

Box FeatureLoss::needed(int input, const Box& out, const NodeTypes& types) const {
  Box box{out[0], {0, types.inputs[input].channels()}};
  for (int axis = 1; axis < out.num_axes(); ++axis) box.push_back(out[axis]);
  return box;
}

std::string FeatureLoss::with_weight(std::string text) const {
  const std::string weight = to_string(weight_);
  if (weight == "1") return text;
  return fmt::format("{}{}weight {}", text, text.empty() ? "" : ", ", weight);
}

double FeatureLoss::share_of_piece(const KernelArgs& args) {
  const Box whole = Box::whole(args.types->output.shape());
  return static_cast<double>(args.out_box.volume()) / static_cast<double>(whole.volume());
}

}  // namespace tessera
