#pragma once
// The loops of batch normalisation on one piece, for CPU. Statistics are taken in float64 by blocks
// of fixed size, so their bits depend on the view's shape and layout but not on the number of
// threads.
//
// Tensors are views N x C x space of one shape and type (float32 or float64), with any strides;
// arrays have one entry per channel of the view. No view is empty.

#include <ATen/ATen.h>

#include <span>
#include <vector>

#include "tessera/ops/batch_norm.h"

namespace tessera {

/// Count, mean and sum of squared distances from the mean of some elements.
struct Moments {
  double count = 0;
  double mean = 0;
  double m2 = 0;
  /// Adds the elements of `other`: Chan, Golub and LeVeque, "Updating formulae and a pairwise
  /// algorithm for computing sample variances", 1979.
  void merge(const Moments& other);
};

/// y = (x - mean) * inverse_std * weight + bias, behind it the activation.
struct ChannelNorm {
  std::vector<double> mean;
  std::vector<double> inverse_std;
  std::vector<double> weight;
  std::vector<double> bias;
  BatchNormOptions::Activation activation = BatchNormOptions::Activation::kNone;
};

void channel_moments(const at::Tensor& x, std::span<Moments> moments);

void normalise(const at::Tensor& x, const ChannelNorm& norm, const at::Tensor& y);

/// Sums of dy and of dy * xhat, with xhat = (x - mean) * inverse_std and dy the gradient in front
/// of the activation.
void channel_gradient_sums(const at::Tensor& x, const at::Tensor& grad_y, const ChannelNorm& norm,
                           std::span<double> sum_dy, std::span<double> sum_dy_xhat);

/// dx = weight * inverse_std * (dy - mean_dy - xhat * mean_dy_xhat). The means are zero where the
/// statistics do not depend on x.
void normalise_gradient(const at::Tensor& x, const at::Tensor& grad_y, const ChannelNorm& norm,
                        std::span<const double> mean_dy, std::span<const double> mean_dy_xhat,
                        const at::Tensor& grad_x);

}  // namespace tessera
