#pragma once
// The parameters of one rank, their gradients, and what the optimiser keeps of them. Gradients lie
// in the buckets that are reduced; each parameter's gradient is a view into one.

#include <vector>

#include "tessera/lower/program.h"

namespace tessera {

class ParameterStore {
 public:
  /// Initial values by (seed, name): the same on every rank.
  ParameterStore(const Graph& graph, uint64_t seed, at::ScalarType real);

  /// Makes the buckets of a program. Programs of one graph and bucket size have the same.
  void make_buckets(const std::vector<Bucket>& buckets);

  const std::vector<at::Tensor>& values() const { return values_; }
  std::vector<at::Tensor>& values() { return values_; }
  /// Undefined for buffers.
  const std::vector<at::Tensor>& gradients() const { return gradients_; }
  const at::Tensor& bucket(int index) const { return buckets_[index]; }
  int num_buckets() const { return static_cast<int>(buckets_.size()); }
  /// Values, buffers and gradients; an optimiser's state is its own.
  int64_t bytes() const;
  int64_t gradient_bytes() const;

 private:
  at::ScalarType real_;
  std::vector<at::Tensor> values_;
  std::vector<at::Tensor> gradients_;
  std::vector<at::Tensor> buckets_;
};

}  // namespace tessera
