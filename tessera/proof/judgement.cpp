#include "tessera/proof/judgement.h"

#include <algorithm>
#include <cmath>

#include "tessera/base/error.h"
#include "tessera/graph/number_type.h"

namespace tessera {
namespace {

constexpr double kFactor = 20;

double highest_limit(const VerifyOptions& options) {
  if (is_narrow(options.real)) return 0.5;
  return options.real == at::kDouble ? 1e-4 : 1e-2;
}

/// Where the numbers of a kind are reported.
struct Fields {
  double VerifyReport::*difference;
  double Sensitivity::*rounding;
};
constexpr std::array<Fields, kNumTensorKinds> kFields{{
    {&VerifyReport::loss_rel, &Sensitivity::loss},
    {&VerifyReport::output_rel, &Sensitivity::output},
    {&VerifyReport::input_grad_rel, &Sensitivity::input_gradient},
    {&VerifyReport::param_grad_rel, &Sensitivity::gradient},
    {&VerifyReport::updated_param_rel, &Sensitivity::updated},
    {&VerifyReport::buffer_rel, &Sensitivity::buffer},
}};
const Fields& fields_of(TensorKind kind) { return kFields[static_cast<int>(kind)]; }

/// How far a difference may go, and where nothing can be told from it any more.
struct Limit {
  double value = 0;
  double highest = INFINITY;
  bool is_raised = false;
};

/// `rounding` is what one rounding does to the tensor.
Limit limit_of(double fixed, double rounding, const VerifyOptions& options) {
  const double reach = kFactor * rounding;
  if (!(reach > fixed)) return {.value = fixed};
  return {reach, std::max(fixed, highest_limit(options)), true};
}

/// Keeps the tensor that is furthest beyond its limit, and one that cannot be judged.
class Verdict {
 public:
  void add(const StepComparison& step, int64_t number, TensorKind kind, size_t index,
           const Limit& limit) {
    const double difference = step.relative(kind, index);
    const auto beyond = [&](double highest) {
      return fmt::format("{} at step {}: {:.2e}, the limit is {:.2e}", step.of(kind).title(index),
                         number, difference, highest);
    };
    if (difference > limit.value && difference / limit.value > furthest_) {
      furthest_ = difference / limit.value;
      failure_ = beyond(limit.value);
    }
    if (difference > limit.highest && undecided_.empty()) undecided_ = beyond(limit.highest);
  }

  void write(VerifyReport* report) const {
    report->undecided = failure_.empty() && !undecided_.empty();
    report->failure = report->undecided ? undecided_ : failure_;
    report->ok = report->failure.empty();
  }

 private:
  double furthest_ = 0;
  std::string failure_;
  std::string undecided_;
};

void raise_maxima(const StepComparison& step, int64_t number, double* worst_of_all,
                  VerifyReport* report) {
  for (TensorKind kind : kTensorKinds) {
    std::string where;
    const double worst = step.worst(kind, &where);
    double& field = report->*fields_of(kind).difference;
    field = std::max(field, worst);
    if (worst <= *worst_of_all) continue;
    *worst_of_all = worst;
    report->worst = fmt::format("{} at step {}", where, number);
  }
  const double l2 = step.of(TensorKind::kGradient).l2();
  if (!(l2 <= report->param_grad_l2)) report->param_grad_l2 = l2;  // NaN stays
}

/// What one rounding does to each tensor of a kind.
std::vector<double> roundings_of(TensorKind kind, const Conditioning& measured) {
  const size_t count = measured[0].of(kind).size();
  std::vector<double> roundings(count);
  for (size_t i = 0; i < count; ++i)
    roundings[i] = std::max(measured[0].relative(kind, i), measured[1].relative(kind, i));
  std::vector<double> sorted = roundings;
  std::sort(sorted.begin(), sorted.end());
  for (double& rounding : roundings) rounding = std::max(rounding, sorted[count / 2]);
  return roundings;
}

void note(const Conditioning& measured, TensorKind kind, const VerifyOptions& options,
          Sensitivity* sensitivity) {
  for (const StepComparison& draw : measured) {
    std::string where;
    const double rounding = draw.worst(kind, &where);
    double& field = sensitivity->*fields_of(kind).rounding;
    field = std::max(field, rounding);
    if (!std::isfinite(fixed_limit(kind, options)) || rounding < sensitivity->largest) continue;
    sensitivity->largest = rounding;
    sensitivity->most = where;
  }
}

}  // namespace

double fixed_limit(TensorKind kind, const VerifyOptions& options) {
  if (options.real == at::kDouble) return options.optimiser == OptimiserKind::kAdamW ? 1e-8 : 1e-10;
  if (is_narrow(options.real)) {
    if (kind == TensorKind::kLoss) return 1e-2;
    return kind == TensorKind::kOutput ? 5e-2 : INFINITY;
  }
  if (kind == TensorKind::kLoss) return 1e-5;
  return kind == TensorKind::kOutput ? 1e-4 : INFINITY;
}

void judge_strictly(const std::vector<StepComparison>& steps, const VerifyOptions& options,
                    VerifyReport* report) {
  report->limit = fixed_limit(TensorKind::kOutput, options);
  double worst_of_all = 0;
  Verdict verdict;
  for (int64_t number = 0; number < std::ssize(steps); ++number) {
    raise_maxima(steps[number], number, &worst_of_all, report);
    for (TensorKind kind : kTensorKinds)
      for (size_t i = 0; i < steps[number].of(kind).size(); ++i)
        verdict.add(steps[number], number, kind, i, {.value = fixed_limit(kind, options)});
  }
  verdict.write(report);
}

void judge_by_conditioning(const std::vector<StepComparison>& steps,
                           const std::vector<Conditioning>& measured, const VerifyOptions& options,
                           VerifyReport* report) {
  Verdict verdict;
  report->sensitivities.assign(steps.size(), {});
  for (int64_t number = 0; number < std::ssize(steps); ++number) {
    Sensitivity& sensitivity = report->sensitivities[number];
    for (TensorKind kind : kTensorKinds) {
      note(measured[number], kind, options, &sensitivity);
      const double fixed = fixed_limit(kind, options);
      const std::vector<double> roundings = roundings_of(kind, measured[number]);
      for (size_t i = 0; i < roundings.size(); ++i) {
        const Limit limit = limit_of(fixed, roundings[i], options);
        sensitivity.raises_limits |= limit.is_raised && steps[number].relative(kind, i) > fixed;
        verdict.add(steps[number], number, kind, i, limit);
      }
    }
  }
  verdict.write(report);
}

}  // namespace tessera
