#pragma once
// The loops of normalisation by planes on one piece: all elements of a sample and channel have one
// mean, one scale and one shift. Batch, group and instance norm differ only in which planes share
// them. What follows a normalisation can be done in the same pass: another value added, as at the
// end of a residual block, and a ReLU. Statistics are taken in float64 by blocks of fixed size, so
// their bits depend on the view's shape and layout but not on the number of threads.
//
// Images are views N x C x space of one shape and type, with any strides. No view is empty.
// Statistics are float64 and samples x cells: one row where all samples share them, else one for
// each; the cells of a row have the same number of neighbouring channels each.

#include <ATen/ATen.h>

#include "tessera/kernels/kernel.h"
#include "tessera/kernels/moments.h"

namespace tessera {

/// What ends the pass.
enum class NormActivation { kNone, kRelu, kRelu6 };

/// y = (x - mean) * inverse_std * weight + bias, plus what is added, then the activation.
struct PlaneNorm {
  at::Tensor mean, inverse_std;  // samples x cells
  at::Tensor weight, bias;       // of the channels, of any real type; undefined: 1 and 0
  NormActivation activation = NormActivation::kNone;
};

struct NormKernels {
  /// Stores them: samples x cells x 3.
  void (*plane_moments)(const at::Tensor& x, const at::Tensor& moments);
  /// `added` may be undefined.
  void (*normalise)(const at::Tensor& x, const PlaneNorm& norm, const at::Tensor& added,
                    const at::Tensor& y);
  /// Stores the sums of dy and of dy * xhat, with xhat = (x - mean) * inverse_std and dy the
  /// gradient before the activation: float64, samples x channels, with as many samples as the
  /// statistics. `y` is there where something was added before a ReLU: its sign is that of the
  /// sum. Else it is undefined, and which elements the ReLU let through is seen from x.
  void (*plane_gradient_sums)(const at::Tensor& x, const at::Tensor& y, const at::Tensor& grad_y,
                              const PlaneNorm& norm, const at::Tensor& sum_dy,
                              const at::Tensor& sum_dy_xhat);
  /// dx = inverse_std * (dxhat - mean_dxhat - xhat * mean_dxhat_xhat), with dxhat = weight * dy.
  /// The means are over all elements that share the statistics, samples x cells, or undefined
  /// where these do not depend on x. The gradient of what was added is dy; `grad_added` may be
  /// undefined.
  void (*normalise_gradient)(const at::Tensor& x, const at::Tensor& y, const at::Tensor& grad_y,
                             const PlaneNorm& norm, const at::Tensor& mean_dxhat,
                             const at::Tensor& mean_dxhat_xhat, const at::Tensor& grad_x,
                             const at::Tensor& grad_added);

  static const NormKernels kCpu;
  static const NormKernels kAten;
  static const NormKernels* const kCuda;
};
inline constexpr Kernel<&NormKernels::plane_moments> plane_moments;
inline constexpr Kernel<&NormKernels::normalise> normalise;
inline constexpr Kernel<&NormKernels::plane_gradient_sums> plane_gradient_sums;
inline constexpr Kernel<&NormKernels::normalise_gradient> normalise_gradient;

}  // namespace tessera
