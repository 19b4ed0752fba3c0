#include "tessera/data/noise.h"

#include "tessera/base/error.h"
#include "tessera/base/random.h"

namespace tessera {
namespace {

/// Classes that a label input may name: the channels of the logits it is compared with.
int64_t num_classes(const Graph& graph, ValueId labels) {
  for (const Use& use : graph.value(labels).uses)
    if (graph.node(use.node).op->is_loss()) return graph.node(use.node).types.inputs[0].channels();
  return 1;
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
    const uint64_t classes = static_cast<uint64_t>(num_classes(graph, input));
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
  for_each_global_index(box, shape,
                        [&](int64_t local, uint64_t global) { data[local] = key.normal(global); });
  target.copy_(noise);
}

}  // namespace tessera
