#pragma once
// The steps of many parameters (optimise.h) as a walk over them, for tables that gain nothing by
// taking them together.

#include "tessera/kernels/optimise.h"

namespace tessera {

template <auto Step>
void sgd_steps_one_by_one(const SgdStep& step, const std::vector<at::Tensor>& parameters,
                          const std::vector<at::Tensor>& gradients,
                          const std::vector<at::Tensor>& velocities) {
  for (size_t i = 0; i < parameters.size(); ++i)
    Step(step, parameters[i], gradients[i], velocities.empty() ? at::Tensor() : velocities[i]);
}

template <auto Step>
void adam_steps_one_by_one(const std::vector<AdamStep>& steps,
                           const std::vector<at::Tensor>& parameters,
                           const std::vector<at::Tensor>& gradients,
                           const std::vector<at::Tensor>& means,
                           const std::vector<at::Tensor>& squares) {
  for (size_t i = 0; i < parameters.size(); ++i)
    Step(steps[i], parameters[i], gradients[i], means[i], squares[i]);
}

}  // namespace tessera
