
#include "tessera/base/error.h"
#include "tessera/kernels/optimise.h"
#include "tessera/optim/per_parameter.h"

namespace tessera {
namespace {

constexpr int kVelocity = 0;

std::vector<OptimiserState::Slot> slots(const SgdOptions& options) {
  if (options.momentum == 0) return {};
  return {{"momentum", OptimiserState::Kind::kLikeParameter}};
}

class Sgd final : public PerParameterOptimiser {
 public:
  explicit Sgd(const SgdOptions& options)
      : PerParameterOptimiser("sgd", slots(options), options.learning_rate), options_(options) {
    check_option("momentum", options.momentum, kNoLimit);
    check_option("weight decay", options.weight_decay, kNoLimit);
    if (options.nesterov && options.momentum == 0)
      throw_error<InvalidInput>(
          "[sgd] Nesterov's step needs momentum above 0; give --momentum 0.9");
  }

 private:
  void step_all(const Stepped& stepped) override {
    // From zeros the velocity becomes the gradient, which is what PyTorch's first step starts with.
    sgd_steps({learning_rate(), options_.momentum, options_.weight_decay, options_.nesterov},
              stepped.parameters, stepped.gradients,
              options_.momentum == 0 ? std::vector<at::Tensor>() : slot(kVelocity, stepped));
  }

  SgdOptions options_;
};

}  // namespace

std::unique_ptr<Optimiser> sgd(const SgdOptions& options) { return std::make_unique<Sgd>(options); }

}  // namespace tessera
