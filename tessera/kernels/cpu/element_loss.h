#pragma once
// What one element costs, and how that grows with the score x, for a target t of a channel.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "tessera/kernels/cpu/logistic.h"
#include "tessera/kernels/loss.h"

namespace tessera {

inline double sign_of(double d) { return static_cast<double>((d > 0) - (d < 0)); }

/// base^gamma, with a short cut for the usual exponent.
inline double power_of(double base, double gamma) {
  return gamma == 2 ? base * base : std::pow(base, gamma);
}

struct SquaredError {
  double value(double x, double t, int64_t) const { return (x - t) * (x - t); }
  double slope(double x, double t, int64_t) const { return 2 * (x - t); }
};

struct AbsoluteError {
  double value(double x, double t, int64_t) const { return std::abs(x - t); }
  double slope(double x, double t, int64_t) const { return sign_of(x - t); }
};

struct SmoothAbsoluteError {
  double beta;

  double value(double x, double t, int64_t) const {
    const double d = x - t;
    return std::abs(d) < beta ? d * d / (2 * beta) : std::abs(d) - beta / 2;
  }
  double slope(double x, double t, int64_t) const {
    const double d = x - t;
    return std::abs(d) < beta ? d / beta : sign_of(d);
  }
};

struct HuberError {
  double delta;

  double value(double x, double t, int64_t) const {
    const double d = x - t;
    return std::abs(d) <= delta ? d * d / 2 : delta * (std::abs(d) - delta / 2);
  }
  double slope(double x, double t, int64_t) const {
    const double d = x - t;
    return std::abs(d) <= delta ? d : delta * sign_of(d);
  }
};

struct LogisticError {
  const std::vector<double>& pos_weights;

  double pos_weight(int64_t channel) const {
    if (pos_weights.empty()) return 1;
    return pos_weights.size() == 1 ? pos_weights[0] : pos_weights[channel];
  }
  double value(double x, double t, int64_t channel) const {
    // Both logarithms at once: they differ by x.
    return (1 - t) * x + (1 - t + pos_weight(channel) * t) * Logistic(x).minus_log_yes();
  }
  double slope(double x, double t, int64_t channel) const {
    const Logistic p(x);
    return (1 - t) * p.yes() - pos_weight(channel) * t * p.no();
  }
};

/// With m = wrong(p, t) and c the cross entropy: m^gamma c, and m^gamma (c' + gamma c m'/m).
struct SigmoidFocalError {
  double gamma, alpha;

  double value(double x, double t, int64_t) const {
    const Logistic p(x);
    return balance(t) * power_of(wrong(p, t), gamma) * cross_entropy(x, p, t);
  }
  double slope(double x, double t, int64_t) const {
    const Logistic p(x);
    const double yes = p.yes(), no = p.no(), m = wrong(p, t);
    // m'/m, in the form that stays finite where m underflows; that needs t = 0 or 1.
    const double growth = t == 0 ? no : t == 1 ? -yes : yes * no * (1 - 2 * t) / m;
    const double slope = (1 - t) * yes - t * no;
    return balance(t) * power_of(m, gamma) * (slope + gamma * cross_entropy(x, p, t) * growth);
  }
  double balance(double t) const { return alpha >= 0 ? alpha * t + (1 - alpha) * (1 - t) : 1; }
  static double wrong(const Logistic& p, double t) { return (1 - t) * p.yes() + t * p.no(); }
  static double cross_entropy(double x, const Logistic& p, double t) {
    return (1 - t) * x + p.minus_log_yes();
  }
};

/// Calls visit(error) with the error of that form; the softmax form is not one of elements.
template <class Visit>
auto with_error(const ElementLoss& loss, Visit&& visit) {
  using Form = ElementLoss::Form;
  switch (loss.form) {
    case Form::kAbsolute:
      return visit(AbsoluteError{});
    case Form::kSmoothAbsolute:
      return visit(SmoothAbsoluteError{loss.parameter});
    case Form::kHuber:
      return visit(HuberError{loss.parameter});
    case Form::kLogistic:
      return visit(LogisticError{loss.channel_weights});
    case Form::kSigmoidFocal:
      return visit(SigmoidFocalError{loss.parameter, loss.alpha});
    default:
      return visit(SquaredError{});
  }
}

}  // namespace tessera
