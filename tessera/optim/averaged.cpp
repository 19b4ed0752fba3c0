#include "tessera/optim/averaged.h"

#include "tessera/base/error.h"

namespace tessera {
namespace {

class Averaged final : public Optimiser {
 public:
  Averaged(std::unique_ptr<Optimiser> optimiser, double decay)
      : optimiser_(std::move(optimiser)), decay_(decay) {
    check_optimiser_option("ema", "decay", decay, 1);
  }

  void step(std::vector<at::Tensor>& parameters,
            const std::vector<at::Tensor>& gradients) override {
    optimiser_->step(parameters, gradients);
    for (size_t i = 0; i < parameters.size(); ++i) {
      const auto id = static_cast<ParameterId>(i);
      if (!gradients[i].defined()) continue;
      const bool first = !state_.find(0, id).defined();
      at::Tensor& average = state_.at(0, id, parameters[i]);
      if (first)
        average.copy_(parameters[i]);
      else
        average.mul_(decay_).add_(parameters[i], 1 - decay_);
    }
  }

  at::Tensor average(ParameterId id) const override { return state_.find(0, id); }

  int state_copies() const override { return optimiser_->state_copies() + 1; }
  bool counts_steps() const override { return optimiser_->counts_steps(); }
  /// The average is the last copy, before the counter.
  void keep_state_in(const std::vector<std::vector<at::Tensor>>& states) override {
    std::vector<std::vector<at::Tensor>> others = states;
    for (size_t id = 0; id < states.size(); ++id) {
      if (states[id].empty()) continue;
      const auto own = others[id].begin() + optimiser_->state_copies();
      state_.keep_in(static_cast<ParameterId>(id), {*own});
      others[id].erase(own);
    }
    optimiser_->keep_state_in(others);
  }

  void set_learning_rate(double learning_rate) override {
    optimiser_->set_learning_rate(learning_rate);
  }
  NamedTensors state(const Graph& graph) const override {
    NamedTensors all = optimiser_->state(graph);
    for (auto& tensor : state_.save(graph)) all.push_back(std::move(tensor));
    return all;
  }
  std::vector<StateTensor> state_layout(const Graph& graph, at::ScalarType real) const override {
    std::vector<StateTensor> all = optimiser_->state_layout(graph, real);
    for (StateTensor& tensor : state_.layout(graph, real)) all.push_back(std::move(tensor));
    return all;
  }
  void load_state(const Graph& graph, const std::vector<at::Tensor>& parameters,
                  const NamedTensors& state) override {
    NamedTensors averages, others;
    for (const auto& tensor : state)
      (tensor.first.starts_with("ema.") ? averages : others).push_back(tensor);
    // An empty state is that of a fresh optimiser; one without averages is that of another.
    if (averages.empty() && !others.empty())
      throw_error<InvalidInput>(
          "[ema] the state has no averages of the weights; resume without --ema, or start anew "
          "from its weights");
    state_.check_loads(graph, parameters, averages);
    optimiser_->load_state(graph, parameters, others);
    state_.load(graph, parameters, averages);
  }

 private:
  std::unique_ptr<Optimiser> optimiser_;
  double decay_;
  OptimiserState state_{"ema", {{"ema", OptimiserState::Kind::kLikeParameter}}};
};

}  // namespace

std::unique_ptr<Optimiser> averaged(std::unique_ptr<Optimiser> optimiser, double decay) {
  return std::make_unique<Averaged>(std::move(optimiser), decay);
}

void WithAverages::exchange() {
  for (size_t id = 0; id < parameters_.size(); ++id) {
    at::Tensor average = optimiser_.average(static_cast<ParameterId>(id));
    if (!average.defined()) continue;
    const at::Tensor weights = parameters_[id].clone();
    parameters_[id].copy_(average);
    average.copy_(weights);
  }
}

}  // namespace tessera
