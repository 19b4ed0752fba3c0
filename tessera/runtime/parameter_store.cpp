#include "tessera/runtime/parameter_store.h"

namespace tessera {

ParameterStore::ParameterStore(const Graph& graph, const std::vector<ParameterId>& held,
                               uint64_t seed, at::ScalarType real)
    : real_(real), values_(graph.parameters().size()), gradients_(graph.parameters().size()) {
  for (ParameterId id : held) values_[id] = initial_value(graph.parameters()[id], seed).to(real);
}

void ParameterStore::make_buckets(const std::vector<Bucket>& buckets) {
  if (buckets_.size() == buckets.size()) return;
  for (const Bucket& bucket : buckets) {
    int64_t total = 0;
    for (ParameterId id : bucket.parameters) total += values_[id].numel();
    buckets_.push_back(at::zeros({total}, real_));
    for (size_t i = 0; i < bucket.parameters.size(); ++i) {
      const at::Tensor& value = values_[bucket.parameters[i]];
      gradients_[bucket.parameters[i]] =
          buckets_.back().narrow(0, bucket.offsets[i], value.numel()).view(value.sizes());
    }
  }
}

int64_t ParameterStore::bytes() const {
  int64_t total = gradient_bytes();
  for (const at::Tensor& value : values_)
    if (value.defined()) total += static_cast<int64_t>(value.nbytes());
  return total;
}

int64_t ParameterStore::gradient_bytes() const {
  int64_t total = 0;
  for (const at::Tensor& bucket : buckets_) total += static_cast<int64_t>(bucket.nbytes());
  return total;
}

}  // namespace tessera
