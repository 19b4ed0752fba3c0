#include "tessera/base/step_function.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tessera/base/error.h"

namespace tessera {

double StepFunction::at(int64_t step) const {
  if (step < start) return 0;
  if (ramp == 0) return value;
  const double progress =
      std::min(1.0, static_cast<double>(step - start) / static_cast<double>(ramp));
  return value * (2 / (1 + std::exp(-10 * progress)) - 1);
}

void check_step_function(const StepFunction& function, const char* what) {
  if (!std::isfinite(function.value))
    throw_error<InvalidInput>("{} {} must be a finite number", what, function.value);
  if (function.start < 0 || function.ramp < 0)
    throw_error<InvalidInput>("{} starts at step {} and grows for {}; give 0 or more", what,
                              function.start, function.ramp);
}

std::string to_string(const StepFunction& function) {
  std::string text = fmt::format("{}", function.value);
  if (function.start > 0) text += fmt::format(" from step {}", function.start);
  if (function.ramp > 0) text += fmt::format(" within {} steps", function.ramp);
  return text;
}

}  // namespace tessera
