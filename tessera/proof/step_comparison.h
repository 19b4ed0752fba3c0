#pragma once
// All that is compared of one step: whichever two runs it is of, the same tensors in the same
// order.

#include <array>
#include <functional>
#include <string>

#include "tessera/graph/graph.h"
#include "tessera/proof/comparison.h"

namespace tessera {

enum class TensorKind { kLoss, kOutput, kInputGradient, kGradient, kUpdated, kBuffer };
constexpr int kNumTensorKinds = 6;

/// The numbers of a step that others are compared with. Tensors are undefined where there is
/// nothing to compare.
struct StepTensors {
  double loss = 0;
  std::vector<double> measured;             // the step's numbers after the loss
  std::vector<at::Tensor> outputs;          // as Graph::outputs()
  std::vector<at::Tensor> input_gradients;  // as Graph::inputs()
  std::vector<at::Tensor> gradients;        // as Graph::parameters()
  std::vector<at::Tensor> parameters;       // after the update; buffers among them
};

class StepComparison {
 public:
  /// Compares tensor `index` of a list of StepTensors with the reference.
  using Compare = std::function<Deviation(size_t index, const at::Tensor& reference)>;
  struct Source {
    double loss = 0;
    std::vector<double> measured;
    Compare output, input_gradient, gradient, parameter;
  };

  /// Asks the source for each defined tensor once, list by list in the order of StepTensors, in
  /// ascending order. A tensor of the reference is let go when it has been compared, but for the
  /// parameters.
  StepComparison(const Graph& graph, StepTensors reference, const Source& source);

  const Comparison& of(TensorKind kind) const { return kinds_[static_cast<int>(kind)]; }
  double relative(TensorKind kind, size_t index) const;
  double worst(TensorKind kind, std::string* where) const;

 private:
  Comparison& of(TensorKind kind) { return kinds_[static_cast<int>(kind)]; }
  double least_scale(TensorKind kind) const;

  std::array<Comparison, kNumTensorKinds> kinds_;
};

/// Whether a parameter's values are running statistics.
TensorKind kind_of(const Parameter& parameter);

/// Every kind once, in order.
constexpr std::array<TensorKind, kNumTensorKinds> kTensorKinds{
    TensorKind::kLoss,     TensorKind::kOutput,  TensorKind::kInputGradient,
    TensorKind::kGradient, TensorKind::kUpdated, TensorKind::kBuffer};

}  // namespace tessera
