#pragma once
// A training state whose every byte is a function of its step, so that a mixture of two checkpoints
// cannot pass for one.

#include "tessera/checkpoint/training_state.h"

namespace tessera {

/// `elements` in the first of its tensors; the others are small.
TrainingState example_state(int64_t step, int64_t elements = 6);

/// The same fields and bits; the order of tensors does not count.
bool same_state(const TrainingState& a, const TrainingState& b);

}  // namespace tessera
