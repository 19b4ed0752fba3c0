#pragma once
// The logistic function 1 / (1 + exp(-x)) with its complement and its logarithm, without overflow
// and without loss of digits at either end, all from one exponential.

#include <algorithm>
#include <cmath>

namespace tessera {

class Logistic {
 public:
  explicit Logistic(double x) : x_(x), exponential_(std::exp(-std::abs(x))) {}

  double yes() const { return (x_ >= 0 ? 1.0 : exponential_) / (1.0 + exponential_); }
  /// 1 - yes().
  double no() const { return (x_ >= 0 ? exponential_ : 1.0) / (1.0 + exponential_); }
  /// -log(yes()).
  double minus_log_yes() const { return std::max(-x_, 0.0) + std::log1p(exponential_); }

 private:
  double x_;
  double exponential_;
};

}  // namespace tessera
