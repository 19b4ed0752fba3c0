#pragma once
// Costs that begin as predictions and become measurements, and how far to trust the predictions
// that are left.

#include <algorithm>
#include <limits>

namespace tessera {

/// By how much predictions are too large, at least: what is not measured yet gets the benefit of
/// the doubt. Stages far below the largest say nothing: they are not what limits.
class Correction {
 public:
  double scale() const { return is_known() ? scale_ : 1; }
  void learn(double predicted, double measured, double largest_measured) {
    constexpr double kShareThatLimits = 0.8;
    if (predicted <= 0 || measured < kShareThatLimits * largest_measured) return;
    scale_ = std::min(scale_, measured / predicted);
  }

 private:
  static constexpr double kUnknown = std::numeric_limits<double>::infinity();
  bool is_known() const { return scale_ < kUnknown; }

  double scale_ = kUnknown;
};

/// One cost in 8 bytes, since there are millions: a measured one has a negative sign.
class LearnedCost {
 public:
  LearnedCost() = default;
  explicit LearnedCost(double predicted) : signed_(predicted) {}

  /// A prediction that is a little too large would hide a better assignment for good, one that is a
  /// little too small costs a measurement.
  double value(const Correction& correction) const {
    constexpr double kBenefitOfTheDoubt = 0.92;
    return is_measured() ? -signed_ : signed_ * correction.scale() * kBenefitOfTheDoubt;
  }
  /// A first measurement also teaches the correction.
  void measure(double measured, double largest_measured, Correction* correction) {
    if (!is_measured()) correction->learn(signed_, measured, largest_measured);
    signed_ = -std::max(measured, 1.0);
  }

 private:
  bool is_measured() const { return signed_ < 0; }

  double signed_ = 0;
};

}  // namespace tessera
