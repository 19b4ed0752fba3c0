#include "tessera/kernels/cuda/optimiser_steps.h"

#include <ATen/Dispatch.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>

#include <cmath>

#include "tessera/base/error.h"
#include "tessera/kernels/optimise.h"

namespace tessera {
namespace {

using Tensors = std::vector<at::Tensor>;

/// Whether all lie as one run of numbers each, of one type.
bool all_are_runs(const std::vector<const Tensors*>& lists) {
  const at::Tensor& first = lists.front()->front();
  for (const Tensors* list : lists)
    for (size_t i = 0; i < list->size(); ++i) {
      const at::Tensor& tensor = (*list)[i];
      TESSERA_CHECK(tensor.sizes() == (*lists.front())[i].sizes(),
                    "an update of tensors of different shapes");
      if (!tensor.is_contiguous() || tensor.scalar_type() != first.scalar_type()) return false;
    }
  return true;
}

/// Launches for `count` runs, of which run_of(i) tells, as many at once as fit.
template <class Run, class Numbers, class RunOf>
void launch_steps(const Numbers& numbers, size_t count, const RunOf& run_of) {
  size_t next = 0;
  while (next < count) {
    cuda::SteppedRuns<Run> runs;
    runs.first_block[0] = 0;
    for (; next < count && runs.count < runs.kMost; ++next) {
      const int i = runs.count++;
      runs.runs[i] = run_of(next);
      const int64_t blocks =
          (runs.runs[i].size + cuda::kSteppedByBlock - 1) / cuda::kSteppedByBlock;
      runs.first_block[i + 1] = runs.first_block[i] + static_cast<int>(blocks);
    }
    cuda::step_runs(numbers, runs, at::cuda::getCurrentCUDAStream());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  }
}

template <class T>
void launch_sgd(const SgdStep& step, const Tensors& parameters, const Tensors& gradients,
                const Tensors& velocities) {
  const cuda::SgdNumbers<T> numbers{.rate = static_cast<T>(step.learning_rate),
                                    .momentum = static_cast<T>(step.momentum),
                                    .decay = static_cast<T>(step.weight_decay),
                                    .nesterov = step.nesterov};
  launch_steps<cuda::SgdRun<T>>(numbers, parameters.size(), [&](size_t i) {
    return cuda::SgdRun<T>{parameters[i].data_ptr<T>(), gradients[i].data_ptr<T>(),
                           velocities.empty() ? nullptr : velocities[i].data_ptr<T>(),
                           parameters[i].numel()};
  });
}

template <class T>
void launch_adam(const std::vector<AdamStep>& steps, const Tensors& parameters,
                 const Tensors& gradients, const Tensors& means, const Tensors& squares) {
  const AdamStep& step = steps.front();
  const cuda::AdamNumbers<T> numbers{
      .beta1 = static_cast<T>(step.beta1),
      .other1 = static_cast<T>(1 - step.beta1),
      .beta2 = static_cast<T>(step.beta2),
      .other2 = static_cast<T>(1 - step.beta2),
      .epsilon = static_cast<T>(step.epsilon),
      .decay = static_cast<T>(step.gradient_decay),
      .kept = static_cast<T>(1 - step.learning_rate * step.weight_decay)};
  launch_steps<cuda::AdamRun<T>>(numbers, parameters.size(), [&](size_t i) {
    const double correction1 = 1 - std::pow(step.beta1, steps[i].steps);
    const double correction2 = 1 - std::pow(step.beta2, steps[i].steps);
    return cuda::AdamRun<T>{parameters[i].data_ptr<T>(),
                            gradients[i].data_ptr<T>(),
                            means[i].data_ptr<T>(),
                            squares[i].data_ptr<T>(),
                            parameters[i].numel(),
                            static_cast<T>(step.learning_rate / correction1),
                            static_cast<T>(std::sqrt(correction2))};
  });
}

}  // namespace

namespace cuda {

void sgd_steps(const SgdStep& step, const Tensors& parameters, const Tensors& gradients,
               const Tensors& velocities) {
  const c10::cuda::CUDAGuard guard(parameters.front().device());
  if (!all_are_runs({&parameters, &gradients, &velocities}))
    return OptimiserKernels::kAten.sgd_steps(step, parameters, gradients, velocities);
  AT_DISPATCH_FLOATING_TYPES(parameters.front().scalar_type(), "sgd_steps", [&] {
    launch_sgd<scalar_t>(step, parameters, gradients, velocities);
  });
}

void sgd_step(const SgdStep& step, const at::Tensor& parameter, const at::Tensor& gradient,
              const at::Tensor& velocity) {
  sgd_steps(step, {parameter}, {gradient}, velocity.defined() ? Tensors{velocity} : Tensors{});
}

void adam_steps(const std::vector<AdamStep>& steps, const Tensors& parameters,
                const Tensors& gradients, const Tensors& means, const Tensors& squares) {
  const c10::cuda::CUDAGuard guard(parameters.front().device());
  if (!all_are_runs({&parameters, &gradients, &means, &squares}))
    return OptimiserKernels::kAten.adam_steps(steps, parameters, gradients, means, squares);
  AT_DISPATCH_FLOATING_TYPES(parameters.front().scalar_type(), "adam_steps", [&] {
    launch_adam<scalar_t>(steps, parameters, gradients, means, squares);
  });
}

void adam_step(const AdamStep& step, const at::Tensor& parameter, const at::Tensor& gradient,
               const at::Tensor& mean, const at::Tensor& square) {
  adam_steps({step}, {parameter}, {gradient}, {mean}, {square});
}

}  // namespace cuda

namespace {

constexpr OptimiserKernels kOptimisersOnGpu{.sgd_step = cuda::sgd_step,
                                            .adam_step = cuda::adam_step,
                                            .sgd_steps = cuda::sgd_steps,
                                            .adam_steps = cuda::adam_steps};

}  // namespace

const OptimiserKernels* const OptimiserKernels::kCuda = &kOptimisersOnGpu;

}  // namespace tessera
