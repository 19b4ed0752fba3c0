#include "tessera/train/optimiser.h"

#include <cmath>

namespace tessera {
namespace {

class Sgd final : public Optimiser {
 public:
  explicit Sgd(const SgdOptions& options) : options_(options) {}

  void step(std::vector<at::Tensor>& parameters,
            const std::vector<at::Tensor>& gradients) override {
    velocities_.resize(parameters.size());
    for (size_t id = 0; id < parameters.size(); ++id) {
      if (!gradients[id].defined()) continue;
      at::Tensor gradient = gradients[id];
      if (options_.weight_decay != 0)
        gradient = gradient.add(parameters[id], options_.weight_decay);
      if (options_.momentum != 0) {
        at::Tensor& velocity = velocities_[id];
        if (velocity.defined())
          velocity.mul_(options_.momentum).add_(gradient);
        else
          velocity = gradient.clone();
        gradient = options_.nesterov ? gradient.add(velocity, options_.momentum) : velocity;
      }
      parameters[id].sub_(gradient, options_.learning_rate);
    }
  }
  int state_copies() const override { return options_.momentum != 0 ? 1 : 0; }

 private:
  SgdOptions options_;
  std::vector<at::Tensor> velocities_;
};

class AdamW final : public Optimiser {
 public:
  explicit AdamW(const AdamWOptions& options) : options_(options) {}

  void step(std::vector<at::Tensor>& parameters,
            const std::vector<at::Tensor>& gradients) override {
    means_.resize(parameters.size());
    squares_.resize(parameters.size());
    ++steps_;
    const double correction1 = 1 - std::pow(options_.beta1, steps_);
    const double correction2 = 1 - std::pow(options_.beta2, steps_);
    for (size_t id = 0; id < parameters.size(); ++id) {
      if (!gradients[id].defined()) continue;
      if (!means_[id].defined()) {
        means_[id] = at::zeros_like(parameters[id]);
        squares_[id] = at::zeros_like(parameters[id]);
      }
      parameters[id].mul_(1 - options_.learning_rate * options_.weight_decay);
      means_[id].mul_(options_.beta1).add_(gradients[id], 1 - options_.beta1);
      squares_[id].mul_(options_.beta2).addcmul_(gradients[id], gradients[id], 1 - options_.beta2);
      const at::Tensor denominator =
          squares_[id].sqrt().div_(std::sqrt(correction2)).add_(options_.epsilon);
      parameters[id].addcdiv_(means_[id], denominator, -options_.learning_rate / correction1);
    }
  }
  int state_copies() const override { return 2; }

 private:
  AdamWOptions options_;
  std::vector<at::Tensor> means_;
  std::vector<at::Tensor> squares_;
  int64_t steps_ = 0;
};

}  // namespace

std::unique_ptr<Optimiser> sgd(const SgdOptions& options) { return std::make_unique<Sgd>(options); }
std::unique_ptr<Optimiser> adamw(const AdamWOptions& options) {
  return std::make_unique<AdamW>(options);
}

}  // namespace tessera
