#pragma once
// Gradient clipping by the global norm, as torch.nn.utils.clip_grad_norm_: all gradients together
// are one vector, and where it is longer than max_norm it is shortened to max_norm.
//
// The norm is summed in float64, parameter by parameter, each in blocks of a fixed size and in
// their order, so that it depends neither on the number of threads nor on who holds which
// parameter: all ranks must get the same bits.
//
// Example:
//   const double norm = gradient_norm(transport, lowered.holders, store.gradients());
//   if (!std::isfinite(norm)) ...   // NaN or infinity in a gradient
//   clip_gradients(store.gradients(), norm, 1.0);

#include <ATen/ATen.h>

#include <vector>

#include "tessera/comm/transport.h"
#include "tessera/plan/plan.h"

namespace tessera {

/// The Euclidean norm of all gradients. Undefined ones (buffers') do not count.
double gradient_norm(const std::vector<at::Tensor>& gradients);

/// The same where stages hold different parameters: `holders` are the ranks of each, ascending, and
/// its first one counts it. Collective over all ranks: an all-reduce of one float64 per parameter,
/// or nothing where every rank holds them all.
double gradient_norm(Transport& transport, const std::vector<Members>& holders,
                     const std::vector<at::Tensor>& gradients);

/// Scales the gradients, whose norm is `norm`, in place by min(1, max_norm / (norm + 1e-6)). Where
/// the norm is not finite they stay as they are: the caller decides whether to stop or to skip the
/// step. `max_norm` is above 0.
void clip_gradients(const std::vector<at::Tensor>& gradients, double norm, double max_norm);

}  // namespace tessera
