#pragma once
// Gradient clipping by the global norm, as torch.nn.utils.clip_grad_norm_: all gradients together
// are one vector, and where it is longer than max_norm it is shortened to max_norm.
//
// The norm is summed in float64, in blocks of a fixed size and in their order, so that it does not
// depend on the number of threads: every rank computes it for itself, and all must get the same
// bits.
//
// Example:
//   const double norm = clip_gradients(store.gradients(), 1.0);
//   if (!std::isfinite(norm)) ...   // NaN or infinity in a gradient: nothing was changed

#include <ATen/ATen.h>

#include <vector>

namespace tessera {

/// The Euclidean norm of all gradients. Undefined ones (buffers') do not count.
double gradient_norm(const std::vector<at::Tensor>& gradients);

/// Scales the gradients in place by min(1, max_norm / (norm + 1e-6)) and returns the norm before. A
/// norm that is not finite is returned with the gradients untouched: whether to stop or to skip the
/// step is the caller's to say. `max_norm` is above 0.
double clip_gradients(const std::vector<at::Tensor>& gradients, double max_norm);

}  // namespace tessera
