#pragma once
// Optimisers, with PyTorch's formulas, order of operations and defaults. All ranks that hold a
// parameter have the same gradient after the reduction, so each takes the same step by itself, and
// nothing is sent.
//
// The state (momentum, moments, step counters) goes out and comes in by parameter name, so that a
// checkpoint does not depend on the placement and a resumed run continues with the same bits.
//
// Example:
//   std::unique_ptr<Optimiser> optimiser = sgd({.learning_rate = 0.1, .nesterov = true});
//   optimiser->set_learning_rate(schedule.at(step));
//   optimiser->step(store.values(), store.gradients());
//   NamedTensors state = optimiser->state(graph);            // "momentum.enc1.conv1.weight", ...
//   optimiser->load_state(graph, store.values(), state);     // in another process

#include <ATen/ATen.h>

#include <memory>
#include <vector>

#include "tessera/graph/graph.h"
#include "tessera/optim/optimiser_state.h"

namespace tessera {

class Optimiser {
 public:
  virtual ~Optimiser() = default;
  /// One step on the trainable parameters, in place. `gradients` are undefined for buffers and for
  /// parameters that other ranks hold.
  virtual void step(std::vector<at::Tensor>& parameters,
                    const std::vector<at::Tensor>& gradients) = 0;
  /// What it keeps of a parameter: tensors like it, and whether it counts its steps.
  virtual int state_copies() const = 0;
  virtual bool counts_steps() const = 0;
  /// From now on the state of each parameter lies in these tensors, its copies first and then its
  /// counter. What has none here, the optimiser allocates by itself.
  virtual void keep_state_in(const std::vector<std::vector<at::Tensor>>& states) = 0;

  /// The moving average of a parameter (averaged.h), which shares the optimiser's memory; undefined
  /// where none is kept, and before the first step.
  virtual at::Tensor average(ParameterId) const { return {}; }

  /// Sets the rate of the steps that follow; at least 0, and finite. It is not part of the state:
  /// it belongs to the schedule.
  virtual void set_learning_rate(double learning_rate) = 0;
  /// The state of the parameters that have been stepped here, in the graph's order; empty before
  /// the first step. Tensors share the optimiser's memory: clone what must outlive the next step.
  virtual NamedTensors state(const Graph& graph) const = 0;
  /// What the state of all parameters is made of once a step has been taken, in the graph's order.
  /// `real` is the element type of the parameters.
  virtual std::vector<StateTensor> state_layout(const Graph& graph, at::ScalarType real) const = 0;
  /// Takes copies of what belongs to the defined ones of `parameters`, which are this run's and say
  /// which element type the state must have. `state` is that of all parameters; an empty one is
  /// that of a fresh optimiser. Throws InvalidInput, and changes nothing, where a name is missing
  /// or unknown, or a shape or element type differs.
  virtual void load_state(const Graph& graph, const std::vector<at::Tensor>& parameters,
                          const NamedTensors& state) = 0;
};

struct SgdOptions {
  double learning_rate = 0.01;
  double momentum = 0.9;
  double weight_decay = 0;
  bool nesterov = false;
};
/// g = gradient + weight_decay p;  v = momentum v + g;  p -= lr v  (Nesterov: lr (g + momentum v)).
/// Throws InvalidInput for options that PyTorch refuses.
std::unique_ptr<Optimiser> sgd(const SgdOptions& options);

struct AdamOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
};
/// Kingma and Ba, "Adam: a method for stochastic optimization": g = gradient + weight_decay p, and
/// a step along the mean of g over the root of the mean of its squares, both bias-corrected.
std::unique_ptr<Optimiser> adam(const AdamOptions& options);

struct AdamWOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
};
/// Loshchilov and Hutter, "Decoupled weight decay regularization": p shrinks by 1 - lr
/// weight_decay, then takes Adam's step with the bias-corrected moments.
std::unique_ptr<Optimiser> adamw(const AdamWOptions& options);

}  // namespace tessera
