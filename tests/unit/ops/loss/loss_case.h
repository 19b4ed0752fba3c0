#pragma once
// One loss node with tensors for its prediction and target, and short names for the losses.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "tessera/ops/loss/binary_cross_entropy.h"
#include "tessera/ops/loss/dice.h"
#include "tessera/ops/loss/focal.h"
#include "tests/unit/ops/op_harness.h"

namespace tessera {

inline ValueType prediction_type(const Shape& shape) {
  if (shape.size() > 2) return ValueType::image(shape);
  ValueType type;
  type.axes = {{AxisKind::kBatch, shape[0], -1, {}}, {AxisKind::kChannel, shape[1], -1, {}}};
  return type;
}

using AddLoss = std::function<void(Graph&, ValueId prediction, ValueId target)>;

/// Prediction and target of a loss node, and tensors for them.
struct LossCase {
  LossCase(const Shape& shape, Element element, const AddLoss& add) {
    at::manual_seed(7);
    const ValueId x = graph.add_input("x", prediction_type(shape));
    const bool real = element == Element::kReal;
    const ValueId t = real ? add_real_target(graph, x, "t") : add_target(graph, x, "t");
    add(graph, x, t);
    prediction = at::randn(shape, at::kDouble) * 2;
    target = real ? at::rand(shape, at::kDouble)
                  : at::randint(std::max<int64_t>(shape[1], 2), graph.type(t).shape(), at::kLong);
  }
  const Node& node() const { return graph.node(0); }
  void ignore_some(int64_t label) {
    target.masked_fill_(at::rand(target.sizes(), at::kDouble) < 0.3, label);
  }
  void check(uint64_t seed) const {
    check_op(*node().op, node().types.inputs, {prediction, target}, {}, {}, seed);
  }
  /// Loss and gradient of the whole, in one piece.
  std::pair<double, at::Tensor> run() const {
    KernelArgs args;
    args.name = &node().name;
    args.types = &node().types;
    args.out_box = Box::whole(node().types.output.shape());
    for (const at::Tensor& input : {prediction, target})
      args.inputs.push_back({input, Box::whole(input.sizes().vec())});
    args.grad_inputs = {{at::empty_like(prediction), args.inputs[0].box}, {}};
    args.loss = at::zeros({}, at::kDouble);
    const Statistics statistics = node().op->forward_statistics(node().types);
    MergeArgs merge{args.types, at::zeros({statistics.per_piece}, at::kDouble),
                    at::zeros({statistics.merged}, at::kDouble)};
    args.piece_statistics = merge.row;
    args.merged_statistics = merge.merged;
    if (statistics.merged > 0) {
      node().op->piece_statistics(args);
      node().op->merge_statistics(merge);
    }
    node().op->forward(args);
    node().op->input_gradient(args);
    return {args.loss.item<double>(), args.grad_inputs[0].tensor};
  }

  Graph graph;
  at::Tensor prediction;
  at::Tensor target;
};

inline AddLoss bce(const BinaryCrossEntropyOptions& options = {}) {
  return [=](Graph& g, ValueId x, ValueId t) { binary_cross_entropy(g, x, t, "loss", options); };
}
inline AddLoss dice(const DiceOptions& options = {}) {
  return [=](Graph& g, ValueId x, ValueId t) { dice(g, x, t, "loss", options); };
}
inline AddLoss focal(const FocalOptions& options = {}) {
  return [=](Graph& g, ValueId x, ValueId t) { focal(g, x, t, "loss", options); };
}

inline constexpr auto kSoftmaxFocal = FocalOptions::Form::kSoftmax;

}  // namespace tessera
