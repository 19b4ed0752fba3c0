#pragma once
// What a step says in numbers, summed over all ranks: its loss, and what is measured beside it. A
// measurement stores nothing, as a loss, but is no part of it and has no gradient.

#include "tessera/graph/graph.h"

namespace tessera {

class Measurement : public Op {
 public:
  /// Which of the step's numbers it adds to; the first is the loss. KernelArgs::loss has as many,
  /// and so has the result of reference().
  virtual Range step_numbers() const = 0;

  ValueType infer_type(std::span<const ValueType> inputs) const override { return inputs[0]; }
  bool is_loss() const final { return true; }
  bool differentiable(int) const final { return false; }
  void input_gradient(KernelArgs&) const final {}
};

/// An operator that measures, in backward, the gradient that arrives at it. KernelArgs::loss of its
/// input gradient, which is run even where no input wants one, has its numbers.
class GradientMeasurement : public Op {
 public:
  virtual Range step_numbers() const = 0;
  /// What it adds to them; the oracle's formula.
  virtual at::Tensor measured(const at::Tensor& gradient) const = 0;
};

/// Null where the operator is none.
const GradientMeasurement* gradient_measurement(const Op& op);

/// Of an operator that stores nothing, or measures a gradient: a loss adds to the first number.
Range step_numbers(const Op& op);

/// 0 without a loss and measurements.
int64_t num_step_numbers(const Graph& graph);

}  // namespace tessera
