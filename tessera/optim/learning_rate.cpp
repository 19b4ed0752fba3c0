#include "tessera/optim/learning_rate.h"

#include <algorithm>
#include <cmath>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {
namespace {

constexpr double kPi = 3.141592653589793;

/// Half a cosine from `start` at fraction 0 to `end` at fraction 1.
double anneal(double start, double end, double fraction) {
  return end + (start - end) / 2 * (std::cos(kPi * fraction) + 1);
}

void check_at_least(const char* what, int64_t value, int64_t least) {
  if (value < least)
    throw_error<InvalidInput>("[schedule] {} {} must be at least {}", what, value, least);
}

/// Throws InvalidInput unless the value is a number in [low, high].
void check_within(const char* what, double value, double low, double high) {
  if (!(value >= low && value <= high))
    throw_error<InvalidInput>("[schedule] {} {} must be from {} to {}", what, value, low, high);
}

void check(const LearningRateOptions& options) {
  constexpr double kHuge = 1e30;
  check_at_least("total steps", options.total_steps, 1);
  check_at_least("steps per epoch", options.steps_per_epoch, 1);
  check_at_least("warm-up steps", options.warmup_steps, 0);
  check_at_least("step size in epochs", options.step_epochs, 1);
  check_within("learning rate", options.learning_rate, 0, kHuge);
  check_within("gamma", options.gamma, 0, kHuge);
  check_within("power", options.power, 0, kHuge);
  check_within("min learning rate", options.min_learning_rate, 0,
               options.schedule == Schedule::kCosine ? options.learning_rate : kHuge);
  check_within("pct_start", options.pct_start, 0, 1);
  check_within("div_factor", options.div_factor, 1, kHuge);
  check_within("final_div_factor", options.final_div_factor, 1, kHuge);
  if (options.warmup_steps >= options.total_steps)
    throw_error<InvalidInput>(
        "[schedule] a warm-up of {} leaves none of the {} of the run; use at most {}",
        counted(options.warmup_steps, "step"), counted(options.total_steps, "step"),
        options.total_steps - 1);
}

}  // namespace

double warmed_up(double rate, int64_t step, int64_t warmup_steps) {
  if (step >= warmup_steps) return rate;
  return rate * static_cast<double>(step + 1) / static_cast<double>(warmup_steps + 1);
}

LearningRate::LearningRate(const LearningRateOptions& options)
    : options_(options), scheduled_steps_(options.total_steps - options.warmup_steps) {
  check(options_);
}

double LearningRate::at(int64_t step) const {
  TESSERA_CHECK(step >= 0, "step {}", step);
  const int64_t warmup = options_.warmup_steps;
  return warmed_up(scheduled(std::max<int64_t>(0, step - warmup)), step, warmup);
}

double LearningRate::scheduled(int64_t step) const {
  switch (options_.schedule) {
    case Schedule::kConstant:
    case Schedule::kPlateau:
      break;
    case Schedule::kExponential:
      return options_.learning_rate *
             std::pow(options_.gamma, static_cast<double>(step / options_.steps_per_epoch));
    case Schedule::kPoly: {
      const int64_t left = std::max<int64_t>(0, scheduled_steps_ - step);
      return options_.learning_rate *
             std::pow(static_cast<double>(left) / static_cast<double>(scheduled_steps_),
                      options_.power);
    }
    case Schedule::kStep: {
      const int64_t drops = step / options_.steps_per_epoch / options_.step_epochs;
      return options_.learning_rate * std::pow(options_.gamma, static_cast<double>(drops));
    }
    case Schedule::kCosine: {
      const int64_t reached = std::min(step, scheduled_steps_);
      return anneal(options_.learning_rate, options_.min_learning_rate,
                    static_cast<double>(reached) / static_cast<double>(scheduled_steps_));
    }
    case Schedule::kOneCycle:
      return one_cycle(std::min(step, scheduled_steps_ - 1));
  }
  return options_.learning_rate;
}

double LearningRate::one_cycle(int64_t step) const {
  const double now = static_cast<double>(step);
  const double peak = options_.pct_start * static_cast<double>(scheduled_steps_) - 1;
  const double last = static_cast<double>(scheduled_steps_ - 1);
  const double start = options_.learning_rate / options_.div_factor;
  const double end = start / options_.final_div_factor;
  // A phase without length (OneCycleLR divides by zero there) is at its end.
  if (now <= peak)
    return peak > 0 ? anneal(start, options_.learning_rate, now / peak) : options_.learning_rate;
  return last > peak ? anneal(options_.learning_rate, end, (now - peak) / (last - peak)) : end;
}

}  // namespace tessera
