#include "tessera/kernels/optimise.h"
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

  void step_all(const Stepped& stepped) override {
    AdamStep step{.learning_rate = learning_rate(),
                  .beta1 = options_.beta1,
                  .beta2 = options_.beta2,
                  .epsilon = options_.epsilon};
    (decay_ == Decay::kInGradient ? step.gradient_decay : step.weight_decay) =
        options_.weight_decay;
    std::vector<AdamStep> steps;
    for (const at::Tensor& counter : slot(kStep, stepped)) {
      step.steps = *counter.data_ptr<double>() += 1;
      steps.push_back(step);
    }
    adam_steps(steps, stepped.parameters, stepped.gradients, slot(kMean, stepped),
               slot(kSquare, stepped));
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
