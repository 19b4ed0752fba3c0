#include <cmath>

#include "tessera/optim/optimiser.h"

namespace tessera {
namespace {

class AdamW final : public Optimiser {
 public:
  explicit AdamW(const AdamWOptions& options)
      : options_(options),
        state_("adamw", {{"exp_avg", OptimiserState::Kind::kLikeParameter},
                         {"exp_avg_sq", OptimiserState::Kind::kLikeParameter},
                         {"step", OptimiserState::Kind::kCounter}}) {
    set_learning_rate(options.learning_rate);
    check_optimiser_option("adamw", "beta1", options.beta1, 1);
    check_optimiser_option("adamw", "beta2", options.beta2, 1);
    check_optimiser_option("adamw", "epsilon", options.epsilon, kNoLimit);
    check_optimiser_option("adamw", "weight decay", options.weight_decay, kNoLimit);
  }

  void step(std::vector<at::Tensor>& parameters,
            const std::vector<at::Tensor>& gradients) override {
    for (size_t id = 0; id < parameters.size(); ++id)
      if (gradients[id].defined())
        step_one(static_cast<ParameterId>(id), parameters[id], gradients[id]);
  }
  int state_copies() const override { return 2; }

  void set_learning_rate(double learning_rate) override {
    check_optimiser_option("adamw", "learning rate", learning_rate, kNoLimit);
    options_.learning_rate = learning_rate;
  }
  NamedTensors state(const Graph& graph) const override { return state_.save(graph); }
  std::vector<StateTensor> state_layout(const Graph& graph, at::ScalarType real) const override {
    return state_.layout(graph, real);
  }
  void load_state(const Graph& graph, const std::vector<at::Tensor>& parameters,
                  const NamedTensors& state) override {
    state_.load(graph, parameters, state);
  }

 private:
  enum Slot { kMean, kSquare, kStep };

  void step_one(ParameterId id, at::Tensor& parameter, const at::Tensor& gradient) {
    const double steps = *state_.at(kStep, id, parameter).data_ptr<double>() += 1;
    const double correction1 = 1 - std::pow(options_.beta1, steps);
    const double correction2 = 1 - std::pow(options_.beta2, steps);
    at::Tensor& mean = state_.at(kMean, id, parameter);
    at::Tensor& square = state_.at(kSquare, id, parameter);
    parameter.mul_(1 - options_.learning_rate * options_.weight_decay);
    mean.mul_(options_.beta1).add_(gradient, 1 - options_.beta1);
    square.mul_(options_.beta2).addcmul_(gradient, gradient, 1 - options_.beta2);
    const at::Tensor denominator =
        square.sqrt().div_(std::sqrt(correction2)).add_(options_.epsilon);
    parameter.addcdiv_(mean, denominator, -options_.learning_rate / correction1);
  }

  AdamWOptions options_;
  OptimiserState state_;
};

}  // namespace

std::unique_ptr<Optimiser> adamw(const AdamWOptions& options) {
  return std::make_unique<AdamW>(options);
}

}  // namespace tessera
