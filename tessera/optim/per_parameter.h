#pragma once
// What optimisers share that step every parameter by itself: which parameters have a gradient, the
// learning rate, and the state by slots and names. Those that have one are handed over together, so
// that a device may step them at once.

#include <string>
#include <vector>

#include "tessera/optim/optimiser.h"

namespace tessera {

class PerParameterOptimiser : public Optimiser {
 public:
  /// `name` begins errors. Throws InvalidInput for a learning rate that is negative or not finite.
  PerParameterOptimiser(const std::string& name, std::vector<OptimiserState::Slot> slots,
                        double learning_rate)
      : name_(name), state_(name, std::move(slots)) {
    set_learning_rate(learning_rate);
  }

  void step(std::vector<at::Tensor>& parameters, const std::vector<at::Tensor>& gradients) final {
    Stepped stepped;
    for (size_t id = 0; id < parameters.size(); ++id) {
      if (!gradients[id].defined()) continue;
      stepped.ids.push_back(static_cast<ParameterId>(id));
      stepped.parameters.push_back(parameters[id]);
      stepped.gradients.push_back(gradients[id]);
    }
    if (!stepped.ids.empty()) step_all(stepped);
  }
  void set_learning_rate(double learning_rate) final {
    check_option("learning rate", learning_rate, kNoLimit);
    learning_rate_ = learning_rate;
  }
  int state_copies() const final { return state_.count(OptimiserState::Kind::kLikeParameter); }
  bool counts_steps() const final { return state_.count(OptimiserState::Kind::kCounter) > 0; }
  void keep_state_in(const std::vector<std::vector<at::Tensor>>& states) final {
    for (size_t id = 0; id < states.size(); ++id)
      if (!states[id].empty()) state_.keep_in(static_cast<ParameterId>(id), states[id]);
  }
  NamedTensors state(const Graph& graph) const final { return state_.save(graph); }
  std::vector<StateTensor> state_layout(const Graph& graph, at::ScalarType real) const final {
    return state_.layout(graph, real);
  }
  void load_state(const Graph& graph, const std::vector<at::Tensor>& parameters,
                  const NamedTensors& state) final {
    state_.load(graph, parameters, state);
  }

 protected:
  /// The parameters of one step, at least one: lists of one length.
  struct Stepped {
    std::vector<ParameterId> ids;
    std::vector<at::Tensor> parameters, gradients;
  };
  virtual void step_all(const Stepped& stepped) = 0;

  /// Throws InvalidInput unless `value` is in [0, below).
  void check_option(const char* option, double value, double below) const {
    check_optimiser_option(name_.c_str(), option, value, below);
  }
  double learning_rate() const { return learning_rate_; }
  /// The tensors of a slot, which step_all may change; zeros at first.
  std::vector<at::Tensor> slot(int index, const Stepped& stepped) {
    std::vector<at::Tensor> tensors;
    for (size_t i = 0; i < stepped.ids.size(); ++i)
      tensors.push_back(state_.at(index, stepped.ids[i], stepped.parameters[i]));
    return tensors;
  }

 private:
  std::string name_;
  OptimiserState state_;
  double learning_rate_ = 0;
};

}  // namespace tessera
