#pragma once
// What the ranks have after a step, compared on rank 0 with what the oracle has: pieces of values
// from their owners, parameters and gradients from one of their holders. They come one at a time
// and are dropped when they have been compared, so nothing is whole anywhere that was not before,
// but for one parameter of another stage.

#include "tessera/lower/lower.h"
#include "tessera/proof/step_comparison.h"
#include "tessera/runtime/rank_session.h"

namespace tessera {

/// Whole tensors of the placement that a caller wants besides the comparison.
struct KeptTensors {
  std::vector<at::Tensor>* gradients = nullptr;   // as Graph::parameters(); null: not wanted
  std::vector<at::Tensor>* parameters = nullptr;  // the same
};

/// On rank 0; collective with send_step() on all others. Makes sure that each element of a value
/// has one owner. Point-to-point: for each value and rank, a message with the boxes of its pieces
/// and one for each piece; one for each parameter, and gradient, that rank 0 does not hold.
StepComparison compare_step(RankSession& session, const Lowering& lowering, StepTensors reference,
                            const KeptTensors& kept);

/// On all ranks but 0.
void send_step(RankSession& session, const Lowering& lowering);

}  // namespace tessera
