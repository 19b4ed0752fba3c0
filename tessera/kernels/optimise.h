#pragma once
// Updates of the weights: the norm of all gradients, clipping by it as
// torch.nn.utils.clip_grad_norm_ does (all gradients are one vector, and where it is longer than
// max_norm it is shortened to max_norm), and the steps of the optimisers, each in one pass over
// weights, gradients and state. Every number by itself and in the tensors' own type, so that bits
// depend neither on threads nor on where tensors lie, nor on which parameters are stepped together.
//
// Example:
//   sgd_step({.learning_rate = 0.1, .momentum = 0.9}, weight, gradient, velocity);
//   sgd_steps({.learning_rate = 0.1}, weights, gradients, {});

#include <ATen/ATen.h>

#include <vector>

#include "tessera/kernels/kernel.h"

namespace tessera {

struct NormOfGradientsKernels {
  /// Stores the sum, a float64 scalar. Summed in float64, in blocks of a fixed size and in their
  /// order, so that it does not depend on the number of threads: all ranks must get the same bits.
  void (*sum_of_squares)(const at::Tensor& gradient, const at::Tensor& sum);
  /// Stores the root of the sum of `squares`, the norm, in a float64 scalar. Multiplies the buckets
  /// by min(1, max_norm / (norm + 1e-6)); by nothing without a limit (0), and where the norm is not
  /// finite.
  void (*clip_gradients)(const at::Tensor& squares, double max_norm, const at::Tensor& norm,
                         const std::vector<at::Tensor>& buckets);

  static const NormOfGradientsKernels kCpu;
  static const NormOfGradientsKernels kAten;
  static const NormOfGradientsKernels* const kCuda;
};
inline constexpr Kernel<&NormOfGradientsKernels::sum_of_squares> sum_of_squares;
inline constexpr Kernel<&NormOfGradientsKernels::clip_gradients> clip_gradients;

/// torch.optim.SGD: g + weight_decay p, the velocity, and the step along it.
struct SgdStep {
  double learning_rate = 0;
  double momentum = 0;
  double weight_decay = 0;
  bool nesterov = false;
};

/// torch.optim.Adam, and AdamW where weights shrink by themselves.
struct AdamStep {
  double learning_rate = 0;
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-8;
  double gradient_decay = 0;  // g + gradient_decay p passes through the moments
  double weight_decay = 0;    // p shrinks by learning_rate weight_decay p
  double steps = 1;           // with this one
};

struct OptimiserKernels {
  /// `velocity` holds zeros before the first step; it is undefined without momentum.
  void (*sgd_step)(const SgdStep& step, const at::Tensor& parameter, const at::Tensor& gradient,
                   const at::Tensor& velocity);
  /// The moments hold zeros before the first step.
  void (*adam_step)(const AdamStep& step, const at::Tensor& parameter, const at::Tensor& gradient,
                    const at::Tensor& mean, const at::Tensor& square);
  /// The same for many parameters, where a device may take them together: lists of one length, but
  /// no velocities without momentum. At least one parameter.
  void (*sgd_steps)(const SgdStep& step, const std::vector<at::Tensor>& parameters,
                    const std::vector<at::Tensor>& gradients,
                    const std::vector<at::Tensor>& velocities);
  /// The steps may differ in how many they are with this one, and in nothing else.
  void (*adam_steps)(const std::vector<AdamStep>& steps, const std::vector<at::Tensor>& parameters,
                     const std::vector<at::Tensor>& gradients, const std::vector<at::Tensor>& means,
                     const std::vector<at::Tensor>& squares);

  static const OptimiserKernels kCpu;
  static const OptimiserKernels kAten;
  static const OptimiserKernels* const kCuda;
};
inline constexpr Kernel<&OptimiserKernels::sgd_step> sgd_step;
inline constexpr Kernel<&OptimiserKernels::adam_step> adam_step;
inline constexpr Kernel<&OptimiserKernels::sgd_steps> sgd_steps;
inline constexpr Kernel<&OptimiserKernels::adam_steps> adam_steps;

}  // namespace tessera
