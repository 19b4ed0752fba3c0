#pragma once
// The loops of normalisation by planes on one piece: all elements of a sample and channel have one
// mean, one scale and one shift. Batch, group and instance norm differ only in which planes share
// them. What follows a normalisation can be done in the same pass: another value added, as at the
// end of a residual block, and a ReLU. Statistics are taken in float64 by blocks of fixed size, so
// their bits depend on the view's shape and layout but not on the number of threads.
//
// Tensors are views N x C x space of one shape and type (float32 or float64), with any strides. No
// view is empty. Arrays have one entry per channel, or one per sample and channel (see PlaneIndex).

#include <ATen/ATen.h>

#include <span>
#include <vector>

#include "tessera/kernels/kernel.h"

namespace tessera {

/// What ends the pass.
enum class NormActivation { kNone, kRelu, kRelu6 };

/// Count, mean and sum of squared distances from the mean of some elements.
struct Moments {
  double count = 0;
  double mean = 0;
  double m2 = 0;
  /// Adds the elements of `other`: Chan, Golub and LeVeque, "Updating formulae and a pairwise
  /// algorithm for computing sample variances", 1979.
  void merge(const Moments& other);
};

/// Moments of several cells as statistics travel: a float64 row with count, mean and M2 of each.
inline constexpr int64_t kNumbersPerCell = 3;
std::vector<Moments> read_moments(const at::Tensor& row);
void write_moments(std::span<const Moments> moments, const at::Tensor& row);

/// Where the numbers of a plane are: entry n * sample_stride + c, with n and c counted from the
/// view's own first. Stride 0: samples share them.
struct PlaneIndex {
  int64_t sample_stride = 0;
  size_t operator()(int64_t n, int64_t c) const {
    return static_cast<size_t>(n * sample_stride + c);
  }
};

/// y = (x - mean) * inverse_std * weight + bias, plus what is added, then the activation.
struct PlaneNorm {
  PlaneIndex index;
  std::vector<double> mean;
  std::vector<double> inverse_std;
  std::vector<double> weight;
  std::vector<double> bias;
  NormActivation activation = NormActivation::kNone;
};

struct NormKernels {
  /// Merges each cell's moments of all rows, in their order. `combined` is none of the rows.
  void (*combine_moments)(const std::vector<at::Tensor>& rows, const at::Tensor& combined);
  void (*plane_moments)(const at::Tensor& x, PlaneIndex index, std::span<Moments> moments);
  /// `added` may be undefined.
  void (*normalise)(const at::Tensor& x, const PlaneNorm& norm, const at::Tensor& added,
                    const at::Tensor& y);
  /// Sums of dy and of dy * xhat, with xhat = (x - mean) * inverse_std and dy the gradient before
  /// the activation. `y` is there where something was added before a ReLU: its sign is that of the
  /// sum. Else it is undefined, and which elements the ReLU let through is seen from x.
  void (*plane_gradient_sums)(const at::Tensor& x, const at::Tensor& y, const at::Tensor& grad_y,
                              const PlaneNorm& norm, std::span<double> sum_dy,
                              std::span<double> sum_dy_xhat);
  /// dx = inverse_std * (dxhat - mean_dxhat - xhat * mean_dxhat_xhat), with dxhat = weight * dy.
  /// The means are over all elements that share the statistics, and zero where these do not depend
  /// on x. The gradient of what was added is dy; `grad_added` may be undefined.
  void (*normalise_gradient)(const at::Tensor& x, const at::Tensor& y, const at::Tensor& grad_y,
                             const PlaneNorm& norm, std::span<const double> mean_dxhat,
                             std::span<const double> mean_dxhat_xhat, const at::Tensor& grad_x,
                             const at::Tensor& grad_added);

  static const NormKernels kCpu;
};
inline constexpr Kernel<&NormKernels::combine_moments> combine_moments;
inline constexpr Kernel<&NormKernels::plane_moments> plane_moments;
inline constexpr Kernel<&NormKernels::normalise> normalise;
inline constexpr Kernel<&NormKernels::plane_gradient_sums> plane_gradient_sums;
inline constexpr Kernel<&NormKernels::normalise_gradient> normalise_gradient;

}  // namespace tessera
