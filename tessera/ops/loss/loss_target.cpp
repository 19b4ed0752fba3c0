#include "tessera/ops/loss/loss_target.h"

#include "tessera/base/error.h"

namespace tessera {

ValueId add_target(Graph& graph, ValueId logits, const std::string& name) {
  ValueType type = graph.type(logits);
  if (type.num_axes() < 2 || type.axes[1].kind != AxisKind::kChannel)
    throw_error<InvalidInput>("[input {}] logits are {}; give batch x classes x space", name,
                              to_string(type));
  type.axes.erase(type.axes.begin() + 1);
  type.element = Element::kIndex;
  return graph.add_input(name, type);
}

ValueId add_real_target(Graph& graph, ValueId prediction, const std::string& name) {
  const ValueType& type = graph.type(prediction);
  if (type.element != Element::kReal)
    throw_error<InvalidInput>("[input {}] the prediction holds labels; give real numbers", name);
  return graph.add_input(name, ValueType(type));
}

}  // namespace tessera
