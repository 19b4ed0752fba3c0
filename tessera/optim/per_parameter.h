#pragma once
// What optimisers share that step every parameter by itself: the walk over them, the learning rate,
// and the state by slots and names.

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
    for (size_t id = 0; id < parameters.size(); ++id)
      if (gradients[id].defined())
        step_one(static_cast<ParameterId>(id), parameters[id], gradients[id]);
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
  virtual void step_one(ParameterId id, at::Tensor& parameter, const at::Tensor& gradient) = 0;

  /// Throws InvalidInput unless `value` is in [0, below).
  void check_option(const char* option, double value, double below) const {
    check_optimiser_option(name_.c_str(), option, value, below);
  }
  double learning_rate() const { return learning_rate_; }
  /// The tensor of a slot, which step_one may change; zeros at first.
  at::Tensor& slot(int index, ParameterId id, const at::Tensor& parameter) {
    return state_.at(index, id, parameter);
  }

 private:
  std::string name_;
  OptimiserState state_;
  double learning_rate_ = 0;
};

}  // namespace tessera
