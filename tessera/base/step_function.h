#pragma once
// A number that changes with the training step: the weight of a loss that starts late, the strength
// of a gradient reversal. It is 0 before `start`; then it is `value`, at once or along the curve of
// Ganin et al. ("Domain-Adversarial Training of Neural Networks", 2016) within `ramp` steps:
//
//   value (2 / (1 + exp(-10 p)) - 1),   p = (step - start) / ramp, at most 1
//
//   value ┤              ______
//         │          _.-'
//         │        .'
//       0 ┼───────'──────────────► step
//               start     start + ramp
//
// Example:
//   StepFunction weight(0.25, 1000);        // 0.25 from step 1000 on
//   StepFunction lambda(1, 0, 10'000);      // lambda.at(500) is 0.245

#include <cstdint>
#include <string>

namespace tessera {

struct StepFunction {
  /// A plain number is the same in all steps.
  StepFunction(double value = 1, int64_t start = 0, int64_t ramp = 0)  // NOLINT
      : value(value), start(start), ramp(ramp) {}

  double at(int64_t step) const;
  StepFunction operator*(double factor) const { return {value * factor, start, ramp}; }

  double value;
  int64_t start;
  int64_t ramp;  // 0: all at once
};

/// Throws InvalidInput, beginning with `what`, unless the value is finite and no step is negative.
void check_step_function(const StepFunction& function, const char* what);

/// "0.25", "0.25 from step 1000", "1 within 10000 steps".
std::string to_string(const StepFunction& function);

}  // namespace tessera
