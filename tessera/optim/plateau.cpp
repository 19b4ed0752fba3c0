#include "tessera/optim/plateau.h"

#include <algorithm>
#include <cmath>

#include "tessera/base/error.h"

namespace tessera {
namespace {

/// Drops that are smaller change nothing: PyTorch's `eps`.
constexpr double kLeastDrop = 1e-8;

}  // namespace

Plateau::Plateau(const Options& options) : options_(options) {
  if (!(options.factor >= 0 && options.factor < 1))
    throw_error<InvalidInput>(
        "[plateau] a factor of {} does not lower the learning rate; it must be in [0, 1)",
        options.factor);
  if (options.patience < 0)
    throw_error<InvalidInput>("[plateau] patience {} must be at least 0", options.patience);
  if (!(options.threshold >= 0 && options.threshold < 1))
    throw_error<InvalidInput>("[plateau] threshold {} must be in [0, 1)", options.threshold);
  state_.rate = options.learning_rate;
}

void Plateau::update(double value) {
  if (is_better(value))
    state_ = {state_.rate, value, 0};
  else
    ++state_.num_bad;
  if (state_.num_bad <= options_.patience) return;
  state_.num_bad = 0;
  const double lower = std::max(state_.rate * options_.factor, options_.min_learning_rate);
  if (state_.rate - lower > kLeastDrop) state_.rate = lower;
}

bool Plateau::is_better(double value) const {
  if (!state_.best) return std::isfinite(value);
  return options_.mode == Mode::kMin ? value < *state_.best * (1 - options_.threshold)
                                     : value > *state_.best * (1 + options_.threshold);
}

}  // namespace tessera
