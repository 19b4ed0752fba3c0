#pragma once
// The learning rate of each step, as a pure function of the step: a resumed run asks for the same
// numbers, and there is no state to save. (Only plateau depends on more than the step.) A step is
// one update of the weights (with accumulation, several batches). For lr = the given rate, t =
// steps since the end of the warm-up, T = all steps after it:
//
//   constant    lr
//   step        lr gamma^floor(t / (step_epochs * steps_per_epoch))       as StepLR
//   exponential lr gamma^floor(t / steps_per_epoch)                       as ExponentialLR
//   poly        lr (1 - t / T)^power                                      as PolynomialLR
//   plateau     what plateau.h says; here it is constant                  as ReduceLROnPlateau
//   cosine      min + (lr - min) (1 + cos(pi t / T)) / 2                  as CosineAnnealingLR
//   one_cycle   from lr/div up to lr at t = pct_start T - 1, then down
//               to lr/(div final_div) at T - 1, along half cosines        as OneCycleLR
//   warm-up     r (s + 1) / (W + 1) in the first W steps s, where r is
//               the schedule's first rate                                 as LinearLR before it
//
// Example:
//   LearningRate rate({.schedule = Schedule::kCosine, .learning_rate = 0.1, .total_steps = 1000,
//                      .steps_per_epoch = 100, .warmup_steps = 50});
//   optimiser->set_learning_rate(rate.at(step));

#include <cstdint>

namespace tessera {

enum class Schedule { kConstant, kStep, kExponential, kPoly, kPlateau, kCosine, kOneCycle };

struct LearningRateOptions {
  Schedule schedule = Schedule::kConstant;
  double learning_rate = 0.01;  // the highest
  int64_t total_steps = 1;      // warm-up included
  int64_t steps_per_epoch = 1;
  int64_t warmup_steps = 0;
  int64_t step_epochs = 10;          // step: epochs between drops
  double gamma = 0.1;                // step: factor of a drop; exponential: of an epoch
  double power = 1;                  // poly
  double min_learning_rate = 0;      // cosine: the end
  double pct_start = 0.3;            // one-cycle: fraction of the steps that climb
  double div_factor = 25;            // one-cycle: lr / start
  double final_div_factor = 10'000;  // one-cycle: start / end
};

/// The rate of a step where the schedule's rate is `rate`: a part of it during the warm-up.
double warmed_up(double rate, int64_t step, int64_t warmup_steps);

class LearningRate {
 public:
  /// Throws InvalidInput for options that make no schedule.
  explicit LearningRate(const LearningRateOptions& options);

  /// Steps count from 0. Beyond the last step the schedule stays at its end.
  double at(int64_t step) const;

 private:
  double scheduled(int64_t step) const;
  double one_cycle(int64_t step) const;

  LearningRateOptions options_;
  int64_t scheduled_steps_;  // after the warm-up
};

}  // namespace tessera
