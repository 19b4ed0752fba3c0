#include "tessera/train/early_stopping.h"

#include <cmath>

#include "tessera/base/error.h"

namespace tessera {

EarlyStopping::EarlyStopping(const Options& options) : options_(options) {
  if (options.patience < 0)
    throw_error<InvalidInput>("[early stopping] patience {} must be at least 0 (0: never stop)",
                              options.patience);
  if (!(options.min_delta >= 0 && std::isfinite(options.min_delta)))
    throw_error<InvalidInput>("[early stopping] min_delta {} must be at least 0, and finite",
                              options.min_delta);
}

bool EarlyStopping::improves(double value) const {
  if (std::isnan(value)) return false;
  if (!state_.best) return true;
  return options_.mode == Mode::kMin ? value < *state_.best - options_.min_delta
                                     : value > *state_.best + options_.min_delta;
}

EarlyStopping::Verdict EarlyStopping::update(double value) {
  if (!improves(value)) {
    ++state_.num_without;
    return Verdict::kNotImproved;
  }
  state_ = {value, 0};
  return Verdict::kImproved;
}

bool EarlyStopping::should_stop() const {
  return options_.patience > 0 && state_.num_without >= options_.patience;
}

}  // namespace tessera
