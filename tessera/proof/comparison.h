#pragma once
// How far two sets of tensors differ, by the rule of the proof (verify.h).

#include <ATen/ATen.h>

#include <string>
#include <vector>

namespace tessera {

/// How far a tensor is from its reference; it may be compared in several parts.
class Deviation {
 public:
  /// Takes a bounded amount of memory, however large the tensors are.
  void add(const at::Tensor& ours, const at::Tensor& reference);

  double difference() const { return difference_; }  // the largest; NaN anywhere: infinite
  double scale() const { return scale_; }            // the largest of the reference
  double squared_difference() const { return squared_difference_; }
  double squared_reference() const { return squared_reference_; }

 private:
  double difference_ = 0;
  double scale_ = 0;
  double squared_difference_ = 0;
  double squared_reference_ = 0;
};

/// Largest relative difference of one kind of tensors, and where it is.
class Comparison {
 public:
  explicit Comparison(std::string kind) : kind_(std::move(kind)) {}

  void add(const std::string& name, const Deviation& deviation);
  /// Undefined and empty references are passed over.
  void add(const std::string& name, const at::Tensor& ours, const at::Tensor& reference);

  size_t size() const { return names_.size(); }
  /// "gradient of conv1.weight".
  std::string title(size_t index) const;
  /// NaN counts as infinitely wrong. Scales below `least_scale` count as that.
  double relative(size_t index, double least_scale = 0) const;
  double worst(std::string* where, double least_scale = 0) const;
  /// The largest reference value of all tensors.
  double largest_scale() const;
  /// |ours - reference| / |reference| in the L2 norm over all tensors together.
  double l2() const;

 private:
  std::string kind_;
  std::vector<std::string> names_;
  std::vector<Deviation> deviations_;
};

}  // namespace tessera
