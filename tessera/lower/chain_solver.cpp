#include "tessera/lower/chain_solver.h"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/lower/multigrid.h"
#include "tessera/ops/chain/chain_arithmetic.h"
#include "tessera/ops/chain/detached.h"
#include "tessera/ops/chain/jump.h"
#include "tessera/ops/chain/linearised.h"

namespace tessera {
namespace {

std::vector<ValueId> mapped(const std::map<ValueId, ValueId>& map,
                            const std::vector<ValueId>& values) {
  std::vector<ValueId> result;
  for (ValueId value : values) result.push_back(map.at(value));
  return result;
}

}  // namespace

ChainSolver::ChainSolver(const Graph& graph, const ResidualChain& chain, const Multigrid& multigrid,
                         Graph* result)
    : graph_(graph), chain_(chain), multigrid_(multigrid), result_(*result) {}

void ChainSolver::solve(ValueId first) {
  const Cycle cycle = cycle_of(multigrid_.forward, SweepOrder::kForward);
  last_sweep(cycle, states_by_cycles(cycle, first));
  const ValueId end = ends_.back();
  values_[graph_.node(chain_.back().add).output] =
      turning_point(result_, end, adjoint_cycles(), name_of(chain_.back().add, "turn"));
}

Cycle ChainSolver::cycle_of(int64_t iterations, SweepOrder order) const {
  return make_cycle(multigrid_, static_cast<int>(chain_.size()), static_cast<int>(iterations),
                    order);
}

std::string ChainSolver::name_of(NodeId node, const std::string& copy) const {
  return fmt::format("{}{}{}", graph_.node(node).name, kSweepMark, copy);
}

/// What a step of so many layers puts in the place of the block's sum: its inputs are the state
/// and the change, where it is larger than one layer.
Node ChainSolver::sum_of_step(const ResidualBlock& block, int64_t num_layers) const {
  Node sum = graph_.node(block.add);
  if (num_layers == 1) return sum;
  sum.op = scaled_step(*step_size(*sum.op) * static_cast<double>(num_layers));
  sum.inputs = {block.state, block.change};
  return sum;
}

// ---- The states ---------------------------------------------------------------------------------

/// Per operation of the cycle. A correction lies where its interval arrives: then slices wait for
/// slices before them alone, and each runs in one go.
std::vector<ValueId> ChainSolver::states_by_cycles(const Cycle& cycle, ValueId first) {
  std::vector<ValueId> values{first};
  for (size_t i = 1; i < cycle.ops.size(); ++i) {
    const CycleOp& op = cycle.ops[i];
    const std::string copy = fmt::format("f{}", i);
    values.push_back(op.kind == CycleOp::Kind::kStep
                         ? step(op, values[op.from], copy)
                         : correction(result_, values[op.from], values[op.now], values[op.then],
                                      name_of(chain_[op.layers.end - 1].add, copy)));
  }
  return values;
}

ValueId ChainSolver::step(const CycleOp& op, ValueId state, const std::string& copy) {
  const ResidualBlock& block = chain_[op.layers.begin];
  ValueMap map{{block.state, state}};
  for (NodeId id : block.nodes) {
    const Node& node = graph_.node(id);
    map[node.output] = result_.add_node(name_of(id, copy), detached(node), mapped(map, node.inputs),
                                        node.parameters, buffers_of_copy(node));
  }
  const Node sum = sum_of_step(block, op.layers.size());
  return result_.add_node(name_of(block.add, copy), detached(sum), mapped(map, sum.inputs));
}

/// `states`: per operation of the cycle.
void ChainSolver::last_sweep(const Cycle& cycle, const std::vector<ValueId>& states) {
  points_.resize(chain_.size());
  intervals_ = cycle.intervals;
  for (size_t j = 0; j < intervals_.size(); ++j) {
    ValueId state = start_of_interval(j, states[cycle.starts[j]]);
    for (int64_t layer = intervals_[j].begin; layer < intervals_[j].end; ++layer)
      state = last_step(layer, state);
    ends_.push_back(state);
  }
}

/// Measured beside the block before it, where the state is, and beside its own, where its gradient
/// is: no slice waits for another one to know how well they fit.
ValueId ChainSolver::start_of_interval(size_t j, ValueId state) {
  if (j == 0) return state;
  const int64_t layer = intervals_[j].begin;
  measure_jump(result_, ends_.back(), state, name_of(chain_[layer - 1].add, "jump"));
  if (!multigrid_.measure_gradients) return state;
  const ValueId start = measured_start(result_, state, name_of(chain_[layer].add, "start"));
  // Before the interval's blocks, so that backward takes away from what all of them have added.
  found_.push_back(
      result_.add_node(name_of(chain_[layer].add, "found"), gradient_taken_away(), {start}));
  return start;
}

ValueId ChainSolver::last_step(int64_t layer, ValueId state) {
  const ResidualBlock& block = chain_[layer];
  ValueMap& point = points_[layer];
  point[block.state] = state;
  const auto copy = [&](NodeId id) {
    const Node& node = graph_.node(id);
    return point[node.output] = values_[node.output] = result_.add_node(
               node.name, node.op, mapped(point, node.inputs), node.parameters, node.buffers);
  };
  for (NodeId id : block.nodes) copy(id);
  return copy(block.add);
}

// ---- Their gradients ----------------------------------------------------------------------------

// The cycle's operations from the last to the first, each turned round. What an
// operation computes becomes what its derivative reads, and what several read a sum. Backward gives
// a sum's gradient to all of its terms: that of the chain's end goes from slice to slice, so that
// the last one does not have to send it to each.

ValueId ChainSolver::adjoint_cycles() {
  const Cycle cycle = cycle_of(multigrid_.backward, SweepOrder::kBackward);
  std::vector<std::vector<Term>> readers(cycle.ops.size());  // of each operation's result
  for (size_t j = 0; j + 1 < intervals_.size(); ++j) {
    const NodeId add = chain_[intervals_[j].end - 1].add;
    readers[cycle.starts[j]].push_back({change(scaled(1), {ends_[j]}, add, "end"), add});
    if (!multigrid_.measure_gradients) continue;
    const NodeId next = chain_[intervals_[j + 1].begin].add;
    readers[cycle.starts[j]].push_back({found_[j], next});
  }
  for (size_t i = cycle.ops.size(); i-- > 1;) {
    const CycleOp& op = cycle.ops[i];
    const std::string copy = fmt::format("b{}", i);
    const NodeId add = chain_[op.layers.begin].add;
    for (Term& term : readers[i]) term.place = add;
    const ValueId out = sum(readers[i], copy);
    if (op.kind == CycleOp::Kind::kStep) {
      readers[op.from].push_back({adjoint_step(op, out, copy), add});
      continue;
    }
    // Two terms at a time, so that the order of additions changes no bit.
    const ValueId difference = change(scaled(1), {out}, add, copy + ".now");
    readers[op.from].push_back({out, add});
    readers[op.now].push_back({difference, add});
    readers[op.then].push_back({change(scaled(-1), {difference}, add, copy + ".then"), add});
  }
  std::ranges::stable_sort(readers[0], {}, &Term::place);
  return sum(readers[0], "given");
}

ValueId ChainSolver::adjoint_step(const CycleOp& op, ValueId state, const std::string& copy) {
  const ResidualBlock& block = chain_[op.layers.begin];
  ValueMap map{{block.state, state}};
  const auto add = [&](const Node& node, const std::string& name) {
    std::vector<ValueId> inputs = mapped(map, node.inputs);
    for (ValueId value : inputs_of_point(node))
      inputs.push_back(points_[op.layers.begin].at(value));
    return result_.add_node(name, linearised(node), inputs, node.parameters, buffers_of_copy(node));
  };
  for (NodeId id : block.nodes)
    map[graph_.node(id).output] = add(graph_.node(id), name_of(id, copy));
  return add(sum_of_step(block, op.layers.size()), name_of(block.add, copy));
}

/// The derivative of an operator that is linear, beside `place`.
ValueId ChainSolver::change(std::shared_ptr<const Op> op, const std::vector<ValueId>& inputs,
                            NodeId place, const std::string& copy) {
  Node node;
  node.name = name_of(place, copy);
  node.op = std::move(op);
  for (ValueId input : inputs) node.types.inputs.push_back(result_.type(input));
  node.types.output = node.types.inputs[0];
  return result_.add_node(node.name, linearised(node), inputs);
}

/// Each term is added at its place.
ValueId ChainSolver::sum(const std::vector<Term>& terms, const std::string& copy) {
  TESSERA_CHECK(!terms.empty(), "nothing reads {}", copy);
  ValueId total = terms[0].value;
  for (size_t i = 1; i < terms.size(); ++i)
    total = change(scaled_step(1), {total, terms[i].value}, terms[i].place,
                   fmt::format("{}.sum{}", copy, i));
  return total;
}

}  // namespace tessera
