#pragma once
// Multigrid is approximate, and near a minimum, where gradients are small, its error is not. This
// says how large it is: the same step is also taken layer after layer, on the same ranks, and the
// two losses and gradients are compared.
//
// Example, every K steps:
//   check.run(context);                  // before the step: forward and backward, no update
//   check.compare_gradients();           // when the step's own gradients are complete
//   check.difference(executor.loss());   // after it

#include <vector>

#include "tessera/comm/transport.h"
#include "tessera/runtime/executor.h"
#include "tessera/train/training_job.h"

namespace tessera {

/// Relative to the serial step. Of all gradients together: |multigrid - serial| / |serial|.
struct SerialDifference {
  double loss = 0;
  double gradient = 0;
};

class SerialCheck {
 public:
  /// All outlive it. `job.serial_step` is there.
  SerialCheck(const TrainingJob& job, ParameterStore* parameters, Transport* transport);

  /// Collective over all ranks. Leaves the step's gradients in the store, and running statistics as
  /// they were.
  void run(const StepContext& context);
  /// Collective over all ranks: 2 numbers are summed.
  void compare_gradients();
  /// Of the step that was run and compared last; the same on all ranks.
  SerialDifference difference(double loss) const;

 private:
  const TrainingJob& job_;
  ParameterStore& parameters_;
  Transport& transport_;
  Executor serial_;
  double loss_ = 0;                    // of the serial step
  std::vector<at::Tensor> gradients_;  // of the serial step, where this rank is the first holder
  double squares_[2] = {0, 0};         // of their difference from the step's own, and of them
};

/// The program of a serial step for --check-serial; null where it is 0. Throws InvalidInput where
/// the plan has nothing to check.
std::shared_ptr<const Lowering> lower_serial_step(const TrainingJob& job);

}  // namespace tessera
