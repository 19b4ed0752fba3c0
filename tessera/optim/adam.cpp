#include <cmath>

#include "tessera/optim/per_parameter.h"

namespace tessera {
namespace {

/// Where the decay of the weights enters.
enum class Decay {
  kInGradient,  // g + weight_decay p: it passes through the moments
  kOfWeights,   // p shrinks by itself, beside Adam's step
};

class Adam final : public PerParameterOptimiser {
 public:
  Adam(const char* name, const AdamOptions& options, Decay decay)
      : PerParameterOptimiser(name,
                              {{"exp_avg", OptimiserState::Kind::kLikeParameter},
                               {"exp_avg_sq", OptimiserState::Kind::kLikeParameter},
                               {"step", OptimiserState::Kind::kCounter}},
                              options.learning_rate),
        options_(options),
        decay_(decay) {
    check_option("beta1", options.beta1, 1);
    check_option("beta2", options.beta2, 1);
    check_option("epsilon", options.epsilon, kNoLimit);
    check_option("weight decay", options.weight_decay, kNoLimit);
  }

 private:
  enum Slot { kMean, kSquare, kStep };

  void step_one(ParameterId id, at::Tensor& parameter, const at::Tensor& gradient) override {
    if (decay_ == Decay::kInGradient && options_.weight_decay != 0)
      return take_step(id, parameter, gradient.add(parameter, options_.weight_decay));
    if (decay_ == Decay::kOfWeights) parameter.mul_(1 - learning_rate() * options_.weight_decay);
    take_step(id, parameter, gradient);
  }

  void take_step(ParameterId id, at::Tensor& parameter, const at::Tensor& gradient) {
    const double steps = *slot(kStep, id, parameter).data_ptr<double>() += 1;
    const double correction1 = 1 - std::pow(options_.beta1, steps);
    const double correction2 = 1 - std::pow(options_.beta2, steps);
    at::Tensor& mean = slot(kMean, id, parameter);
    at::Tensor& square = slot(kSquare, id, parameter);
    mean.mul_(options_.beta1).add_(gradient, 1 - options_.beta1);
    square.mul_(options_.beta2).addcmul_(gradient, gradient, 1 - options_.beta2);
    const at::Tensor denominator =
        square.sqrt().div_(std::sqrt(correction2)).add_(options_.epsilon);
    parameter.addcdiv_(mean, denominator, -learning_rate() / correction1);
  }

  AdamOptions options_;
  Decay decay_;
};

}  // namespace

std::unique_ptr<Optimiser> adam(const AdamOptions& options) {
  return std::make_unique<Adam>("adam", options, Decay::kInGradient);
}

std::unique_ptr<Optimiser> adamw(const AdamWOptions& options) {
  return std::make_unique<Adam>("adamw",
                                AdamOptions{.learning_rate = options.learning_rate,
                                            .beta1 = options.beta1,
                                            .beta2 = options.beta2,
                                            .epsilon = options.epsilon,
                                            .weight_decay = options.weight_decay},
                                Decay::kOfWeights);
}

}  // namespace tessera
