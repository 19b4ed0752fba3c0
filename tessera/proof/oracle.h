#pragma once
// The other side of the proof: training on one rank by autograd, step by step, on whole tensors.
// Only rank 0 has one, and of each step it has no more than that step's tensors.
//
// How much rounding matters in a network can be measured with others that round once more: every
// weight, every pixel and every value that an operator computes is moved to a neighbouring
// floating-point number. Where they end is what no comparison of two orders of summation can see
// through.

#include <memory>

#include "tessera/base/random.h"
#include "tessera/optim/optimiser.h"
#include "tessera/proof/step_comparison.h"
#include "tessera/proof/verify.h"

namespace tessera {

/// The optimiser of both sides.
std::unique_ptr<Optimiser> optimiser_of(const VerifyOptions& options);

/// Writes a box of an input in one step: the user's numbers, or noise. Inputs are known by their
/// order, which the lowering keeps.
void load_input(const Graph& graph, ValueId input, const VerifyOptions& options, int64_t step,
                const Box& box, at::Tensor target);

class Oracle {
 public:
  /// `options` outlive it. With a key it rounds once more, up or down by numbers of that key.
  Oracle(const Graph& graph, const VerifyOptions& options,
         const std::optional<RandomKey>& rounding = std::nullopt);

  /// One step. The parameters in the result share the oracle's memory: they change with the next.
  StepTensors step(int64_t step);

 private:
  std::vector<at::Tensor> inputs(int64_t step) const;
  void clip(std::vector<at::Tensor>* gradients) const;

  const Graph graph_;  // with the plan's multigrid: what is approximate is so on both sides
  const VerifyOptions& options_;
  const std::optional<RandomKey> rounding_;
  std::vector<at::Tensor> parameters_;
  std::unique_ptr<Optimiser> optimiser_;
};

/// How far one rounding moves the oracle in a step, drawn twice: a draw may by luck move a tensor
/// of few numbers by nearly nothing.
using Conditioning = std::array<StepComparison, 2>;

/// Of each step. Takes the time of four oracles, and the memory of one and of another's weights,
/// gradients and optimiser state.
std::vector<Conditioning> measure_conditioning(const Graph& graph, const VerifyOptions& options);

}  // namespace tessera
