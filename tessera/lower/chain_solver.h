#pragma once
// Writes the multigrid solve of one chain into a graph (multigrid.h says what it is made of).

#include <map>
#include <string>
#include <vector>

#include "tessera/lower/multigrid_cycle.h"
#include "tessera/lower/residual_chains.h"

namespace tessera {

class ChainSolver {
 public:
  /// All outlive it. `chain` is one of `graph`.
  ChainSolver(const Graph& graph, const ResidualChain& chain, const Multigrid& multigrid,
              Graph* result);

  /// Once; `first` is the state before the chain.
  void solve(ValueId first);

  /// The new value that stands for one that a node of the chain makes: the last sweep's, and at the
  /// chain's end the state whose gradient the adjoint cycles get.
  ValueId value(ValueId old) const { return values_.at(old); }

 private:
  using ValueMap = std::map<ValueId, ValueId>;  // by the chain's old values

  Cycle cycle_of(int64_t iterations, SweepOrder order) const;
  std::string name_of(NodeId node, const std::string& copy) const;
  Node sum_of_step(const ResidualBlock& block, int64_t num_layers) const;

  // The states.
  std::vector<ValueId> states_by_cycles(const Cycle& cycle, ValueId first);
  ValueId step(const CycleOp& op, ValueId state, const std::string& copy);
  void last_sweep(const Cycle& cycle, const std::vector<ValueId>& states);
  ValueId start_of_interval(size_t j, ValueId state);
  ValueId last_step(int64_t layer, ValueId state);

  // Their gradients.
  ValueId adjoint_cycles();
  ValueId adjoint_step(const CycleOp& op, ValueId state, const std::string& copy);
  ValueId change(std::shared_ptr<const Op> op, const std::vector<ValueId>& inputs, NodeId place,
                 const std::string& copy);
  struct Term {
    ValueId value;
    NodeId place;  // the sum of a layer that the addition lies beside
  };
  ValueId sum(const std::vector<Term>& terms, const std::string& copy);

  const Graph& graph_;
  const ResidualChain& chain_;
  const Multigrid& multigrid_;
  Graph& result_;
  std::vector<Range> intervals_;
  std::vector<ValueId> found_;    // per interval but the first, where measured: takes away the
                                  // gradient that is found for its start
  std::vector<ValueId> ends_;     // per interval: the state that the last sweep ends with
  std::vector<ValueMap> points_;  // per layer: values of the last sweep, its state included
  ValueMap values_;
};

}  // namespace tessera
