#include <cmath>

#include "tessera/kernels/optimise.h"
#include "tessera/kernels/steps_one_by_one.h"

// A product and the sum that it goes into are two calls, so that each is rounded: the bits are
// those of the loops on the CPU.

namespace tessera {

namespace aten {

void sgd_step(const SgdStep& step, const at::Tensor& parameter, const at::Tensor& gradient,
              const at::Tensor& velocity) {
  at::Tensor g = gradient;
  if (step.weight_decay != 0) g = g + parameter * step.weight_decay;
  if (velocity.defined()) {
    velocity.mul_(step.momentum).add_(g);
    g = step.nesterov ? g + velocity * step.momentum : velocity;
  }
  parameter.sub_(g * step.learning_rate);
}

void adam_step(const AdamStep& step, const at::Tensor& parameter, const at::Tensor& gradient,
               const at::Tensor& mean, const at::Tensor& square) {
  const double correction1 = 1 - std::pow(step.beta1, step.steps);
  const double correction2 = 1 - std::pow(step.beta2, step.steps);
  at::Tensor g = gradient;
  if (step.gradient_decay != 0) g = g + parameter * step.gradient_decay;
  if (step.weight_decay != 0) parameter.mul_(1 - step.learning_rate * step.weight_decay);
  mean.mul_(step.beta1).add_(g * (1 - step.beta1));
  square.mul_(step.beta2).add_((g * (1 - step.beta2)).mul_(g));
  const at::Tensor spread = square.sqrt().div_(std::sqrt(correction2)).add_(step.epsilon);
  parameter.sub_((mean * (step.learning_rate / correction1)).div_(spread));
}

}  // namespace aten

const OptimiserKernels OptimiserKernels::kAten{
    .sgd_step = aten::sgd_step,
    .adam_step = aten::adam_step,
    .sgd_steps = sgd_steps_one_by_one<aten::sgd_step>,
    .adam_steps = adam_steps_one_by_one<aten::adam_step>};

}  // namespace tessera
