#pragma once
// Optimisers, with PyTorch's formulas and defaults. Every rank holds all parameters and has the same
// gradients after the reduction, so every rank takes the same step by itself.

#include <memory>
#include <vector>

#include "tessera/runtime/parameter_store.h"

namespace tessera {

class Optimiser {
 public:
  virtual ~Optimiser() = default;
  /// One step on the trainable parameters, in place. `gradients` are undefined for buffers.
  virtual void step(std::vector<at::Tensor>& parameters,
                    const std::vector<at::Tensor>& gradients) = 0;
  /// Bytes of state per byte of trainable parameter.
  virtual int state_copies() const = 0;
};

struct SgdOptions {
  double learning_rate = 0.01;
  double momentum = 0.9;
  double weight_decay = 0;
  bool nesterov = false;
};
std::unique_ptr<Optimiser> sgd(const SgdOptions& options);

struct AdamWOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
};
std::unique_ptr<Optimiser> adamw(const AdamWOptions& options);

}  // namespace tessera
