#include <cmath>

#include "tessera/optim/per_parameter.h"

namespace tessera {
namespace {

class AdamW final : public PerParameterOptimiser {
 public:
  explicit AdamW(const AdamWOptions& options)
      : PerParameterOptimiser("adamw",
                              {{"exp_avg", OptimiserState::Kind::kLikeParameter},
                               {"exp_avg_sq", OptimiserState::Kind::kLikeParameter},
                               {"step", OptimiserState::Kind::kCounter}},
                              options.learning_rate),
        options_(options) {
    check_option("beta1", options.beta1, 1);
    check_option("beta2", options.beta2, 1);
    check_option("epsilon", options.epsilon, kNoLimit);
    check_option("weight decay", options.weight_decay, kNoLimit);
  }

 private:
  enum Slot { kMean, kSquare, kStep };

  void step_one(ParameterId id, at::Tensor& parameter, const at::Tensor& gradient) override {
    const double steps = *slot(kStep, id, parameter).data_ptr<double>() += 1;
    const double correction1 = 1 - std::pow(options_.beta1, steps);
    const double correction2 = 1 - std::pow(options_.beta2, steps);
    at::Tensor& mean = slot(kMean, id, parameter);
    at::Tensor& square = slot(kSquare, id, parameter);
    parameter.mul_(1 - learning_rate() * options_.weight_decay);
    mean.mul_(options_.beta1).add_(gradient, 1 - options_.beta1);
    square.mul_(options_.beta2).addcmul_(gradient, gradient, 1 - options_.beta2);
    const at::Tensor denominator =
        square.sqrt().div_(std::sqrt(correction2)).add_(options_.epsilon);
    parameter.addcdiv_(mean, denominator, -learning_rate() / correction1);
  }

  AdamWOptions options_;
};

}  // namespace

std::unique_ptr<Optimiser> adamw(const AdamWOptions& options) {
  return std::make_unique<AdamW>(options);
}

}  // namespace tessera
