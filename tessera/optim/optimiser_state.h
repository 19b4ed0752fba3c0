#pragma once
// What an optimiser remembers of each parameter: a few tensors of its shape, and counters. One
// table for all optimisers, so that saving, loading and its errors are written once.
//
// Example:
//   OptimiserState state("sgd", {{"momentum", OptimiserState::Kind::kLikeParameter}});
//   state.at(0, id, parameters[id]).mul_(0.9).add_(gradients[id]);   // zeros at first
//   state.save(graph);   // "momentum.conv1.weight", ...

#include <ATen/ATen.h>

#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tessera/graph/graph.h"

namespace tessera {

/// Tensors by name, in the graph's order.
using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// What one tensor of a state is, also for ranks that do not hold its parameter.
struct StateTensor {
  std::string name;  // "momentum.conv1.weight"
  ParameterId parameter = -1;
  Shape shape;
  at::ScalarType type = at::kFloat;
};

class OptimiserState {
 public:
  enum class Kind {
    kLikeParameter,
    kCounter,  // one float64, exact to 2^53 steps
  };
  struct Slot {
    std::string name;
    Kind kind;
  };

  /// `optimiser` is named in errors. Counters come after all others.
  OptimiserState(std::string optimiser, std::vector<Slot> slots);

  /// How many slots are of a kind.
  int count(Kind kind) const;
  /// Where the tensors of a parameter are to lie, slot by slot.
  void keep_in(ParameterId id, const std::vector<at::Tensor>& tensors);
  /// The tensor of a slot and a parameter; zeros where there is none yet.
  at::Tensor& at(int slot, ParameterId id, const at::Tensor& parameter);

  /// The same; undefined where there is none yet.
  at::Tensor find(int slot, ParameterId id) const;

  NamedTensors save(const Graph& graph) const;
  /// As Optimiser::state_layout.
  std::vector<StateTensor> layout(const Graph& graph, at::ScalarType real) const;
  /// As Optimiser::load_state.
  void load(const Graph& graph, const std::vector<at::Tensor>& parameters,
            const NamedTensors& state);
  /// Throws what load() would throw, and changes nothing.
  void check_loads(const Graph& graph, const std::vector<at::Tensor>& parameters,
                   const NamedTensors& state) const {
    taken(graph, parameters, state);
  }

 private:
  using ByName = std::map<std::string, at::Tensor>;
  /// The tensors of `state`, as tensors_ has them.
  std::vector<std::vector<at::Tensor>> taken(const Graph& graph,
                                             const std::vector<at::Tensor>& parameters,
                                             const NamedTensors& state) const;
  ByName index(const NamedTensors& state) const;
  at::Tensor take(ByName& tensors, const Slot& slot, const Parameter& parameter,
                  const at::Tensor& value) const;
  at::Tensor new_tensor(size_t slot, ParameterId id, const at::Tensor& parameter) const;
  void check(const std::string& name, const at::Tensor& loaded, const Slot& slot,
             const at::Tensor& value) const;

  std::string optimiser_;
  std::vector<Slot> slots_;
  std::vector<std::vector<at::Tensor>> tensors_;  // [slot][parameter]; undefined until first used
  std::map<ParameterId, std::vector<at::Tensor>> places_;  // where they are to lie, slot by slot
};

inline constexpr double kNoLimit = std::numeric_limits<double>::infinity();

/// Throws InvalidInput unless `value` is in [0, below).
void check_optimiser_option(const char* optimiser, const char* option, double value, double below);

}  // namespace tessera
