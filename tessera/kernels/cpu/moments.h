#pragma once
// Count, mean and sum of squared distances from the mean of some elements, as numbers.

#include <ATen/ATen.h>

#include <vector>

#include "tessera/kernels/moments.h"

namespace tessera {

struct Moments {
  double count = 0;
  double mean = 0;
  double m2 = 0;
  /// Adds the elements of `other`: Chan, Golub and LeVeque, "Updating formulae and a pairwise
  /// algorithm for computing sample variances", 1979.
  void merge(const Moments& other);
};

/// Stores them, in a float64 tensor with three numbers for each, in a view of any strides.
void write_moments(const std::vector<Moments>& moments, const at::Tensor& to);

}  // namespace tessera
