#include "tessera/data/noise.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/base/random.h"

namespace tessera {
namespace {

/// Labels that a loss takes: those of its channels. A single channel stands for 0 and 1, but where
/// the classes compete it is the only class.
int64_t labels_of_loss(const Node& loss) {
  const std::string kind = loss.op->kind();
  const bool compete = kind == "cross_entropy" || kind == "softmax_focal";
  return std::max<int64_t>(loss.types.inputs[0].channels(), compete ? 1 : 2);
}

/// Classes that a label input may name, by the losses that read it or labels made from it; the
/// fewest where they differ, and none (0) where no loss reads it.
int64_t num_classes(const Graph& graph, ValueId labels) {
  int64_t fewest = 0;
  for (const Use& use : graph.value(labels).uses) {
    const Node& node = graph.node(use.node);
    const int64_t classes = node.op->is_loss() ? labels_of_loss(node)
                            : graph.type(node.output).element == Element::kIndex
                                ? num_classes(graph, node.output)
                                : 0;
    if (classes > 0) fewest = fewest == 0 ? classes : std::min(fewest, classes);
  }
  return fewest;
}

/// Whether an input is nothing but the target of losses. Targets are probabilities for some of
/// them, so they stay in [0, 1).
bool is_target(const Graph& graph, ValueId input) {
  const std::vector<Use>& uses = graph.value(input).uses;
  return !uses.empty() && std::all_of(uses.begin(), uses.end(), [&](const Use& use) {
    return graph.node(use.node).op->is_loss() && use.input == 1;
  });
}

/// Global row-major indices of the elements of a box, in the box's own row-major order.
template <class Body>
void for_each_global_index(const Box& box, const Shape& shape, Body body) {
  const int axes = box.num_axes();
  const Range last = box[axes - 1];
  std::vector<int64_t> position;
  for (int axis = 0; axis < axes; ++axis) position.push_back(box[axis].begin);
  int64_t local = 0;
  while (true) {
    int64_t row = 0;
    for (int axis = 0; axis < axes; ++axis)
      row = row * shape[axis] + (axis + 1 < axes ? position[axis] : 0);
    for (int64_t i = last.begin; i < last.end; ++i) body(local++, static_cast<uint64_t>(row + i));
    int axis = axes - 2;
    while (axis >= 0 && ++position[axis] == box[axis].end) {
      position[axis] = box[axis].begin;
      --axis;
    }
    if (axis < 0) return;
  }
}

}  // namespace

void load_noise(const Graph& graph, ValueId input, uint64_t seed, int64_t step, const Box& box,
                at::Tensor target) {
  if (box.empty()) return;
  const Value& value = graph.value(input);
  const RandomKey key = RandomKey(seed).with(value.name).with(static_cast<uint64_t>(step));
  const Shape shape = value.type.shape();
  if (value.type.element == Element::kIndex) {
    const uint64_t classes = static_cast<uint64_t>(std::max<int64_t>(num_classes(graph, input), 1));
    at::Tensor labels = at::empty(box.shape(), at::kLong);
    int64_t* data = labels.data_ptr<int64_t>();
    for_each_global_index(box, shape, [&](int64_t local, uint64_t global) {
      data[local] = static_cast<int64_t>(key.bits(global) % classes);
    });
    target.copy_(labels);
    return;
  }
  at::Tensor noise = at::empty(box.shape(), at::kDouble);
  double* data = noise.data_ptr<double>();
  const bool uniform = is_target(graph, input);
  for_each_global_index(box, shape, [&](int64_t local, uint64_t global) {
    data[local] = uniform ? key.uniform(global) : key.normal(global);
  });
  target.copy_(noise);
}

}  // namespace tessera
