#pragma once
// How far two sets of tensors differ, by the rule of the proof (verify.h).

#include <ATen/ATen.h>

#include <string>
#include <vector>

namespace tessera {

/// Largest relative difference of one kind of tensors, and where it is.
class Comparison {
 public:
  explicit Comparison(std::string kind) : kind_(std::move(kind)) {}

  /// Undefined and empty references are passed over.
  void add(const std::string& name, const at::Tensor& ours, const at::Tensor& reference);

  /// NaN counts as infinitely wrong. Scales below `least_scale` count as that.
  double worst(std::string* where, double least_scale = 0) const;
  /// The largest reference value of all tensors.
  double largest_scale() const;

 private:
  std::string kind_;
  std::vector<std::string> names_;
  std::vector<double> differences_;
  std::vector<double> scales_;
};

/// |ours - reference| / |reference| in the L2 norm over all tensors together.
double l2_difference(const std::vector<at::Tensor>& ours, const std::vector<at::Tensor>& reference);

}  // namespace tessera
