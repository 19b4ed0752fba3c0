#pragma once
// What an update does to all gradients together: their norm, and clipping by it as
// torch.nn.utils.clip_grad_norm_ does: all gradients are one vector, and where it is longer than
// max_norm it is shortened to max_norm.

#include <ATen/ATen.h>

namespace tessera {

/// Summed in float64, in blocks of a fixed size and in their order, so that it does not depend on
/// the number of threads: all ranks must get the same bits.
double sum_of_squares(const at::Tensor& gradient);

/// What gradients of this norm are multiplied by: min(1, max_norm / (norm + 1e-6)); 1 without a
/// limit (0), and where the norm is not finite.
double clip_factor(double norm, double max_norm);

}  // namespace tessera
