#pragma once
// The parameters that one rank holds and their gradients. Gradients lie in the buckets that are
// reduced; each parameter's gradient is a view into one. Those of other stages are undefined here.

#include <vector>

#include "tessera/lower/program.h"

namespace tessera {

class ParameterStore {
 public:
  /// Initial values by (seed, name): the same on every rank that holds them.
  ParameterStore(const Graph& graph, const std::vector<ParameterId>& held, uint64_t seed,
                 at::ScalarType real);

  /// Makes the buckets of a program. Programs of one graph and bucket size have the same.
  void make_buckets(const std::vector<Bucket>& buckets);

  /// As Graph::parameters(); undefined where this rank does not hold one.
  const std::vector<at::Tensor>& values() const { return values_; }
  std::vector<at::Tensor>& values() { return values_; }
  /// Undefined for buffers, and where this rank does not hold one.
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
