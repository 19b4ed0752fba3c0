
#include "tessera/base/error.h"
#include "tessera/optim/optimiser.h"

namespace tessera {
namespace {

constexpr int kVelocity = 0;

std::vector<OptimiserState::Slot> slots(const SgdOptions& options) {
  if (options.momentum == 0) return {};
  return {{"momentum", OptimiserState::Kind::kLikeParameter}};
}

class Sgd final : public Optimiser {
 public:
  explicit Sgd(const SgdOptions& options) : options_(options), state_("sgd", slots(options)) {
    set_learning_rate(options.learning_rate);
    check_optimiser_option("sgd", "momentum", options.momentum, kNoLimit);
    check_optimiser_option("sgd", "weight decay", options.weight_decay, kNoLimit);
    if (options.nesterov && options.momentum == 0)
      throw_error<InvalidInput>(
          "[sgd] Nesterov's step needs momentum above 0; give --momentum 0.9");
  }

  void step(std::vector<at::Tensor>& parameters,
            const std::vector<at::Tensor>& gradients) override {
    for (size_t id = 0; id < parameters.size(); ++id)
      if (gradients[id].defined())
        step_one(static_cast<ParameterId>(id), parameters[id], gradients[id]);
  }
  int state_copies() const override { return options_.momentum != 0 ? 1 : 0; }

  void set_learning_rate(double learning_rate) override {
    check_optimiser_option("sgd", "learning rate", learning_rate, kNoLimit);
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
  void step_one(ParameterId id, at::Tensor& parameter, at::Tensor gradient) {
    if (options_.weight_decay != 0) gradient = gradient.add(parameter, options_.weight_decay);
    if (options_.momentum != 0) {
      // From zeros this gives the gradient itself, which is what PyTorch's first step starts with.
      at::Tensor& velocity = state_.at(kVelocity, id, parameter);
      velocity.mul_(options_.momentum).add_(gradient);
      gradient = options_.nesterov ? gradient.add(velocity, options_.momentum) : velocity;
    }
    parameter.sub_(gradient, options_.learning_rate);
  }

  SgdOptions options_;
  OptimiserState state_;
};

}  // namespace

std::unique_ptr<Optimiser> sgd(const SgdOptions& options) { return std::make_unique<Sgd>(options); }

}  // namespace tessera
