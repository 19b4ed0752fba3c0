#include "tessera/runtime/parameter_store.h"

#include "tessera/graph/number_type.h"

namespace tessera {

ParameterStore::ParameterStore(const Graph& graph, const std::vector<ParameterId>& held,
                               uint64_t seed, at::ScalarType real, Device& device)
    : device_(device),
      options_(at::TensorOptions().dtype(wide(real)).device(device.place())),
      values_(graph.parameters().size()),
      gradients_(graph.parameters().size()),
      states_(graph.parameters().size()),
      arena_(device) {
  for (ParameterId id : held)
    values_[id] = initial_value(graph.parameters()[id], seed, wide(real)).to(device.place());
}

void ParameterStore::make_buckets(const Program& program) {
  if (buckets_.empty()) buckets_.resize(program.buckets.size());
  for (size_t b = 0; b < program.buckets.size(); ++b) {
    const Bucket& bucket = program.buckets[b];
    Stored& stored = buckets_[b];
    if (is_permanent(program.buffers[bucket.buffer].kind) && !stored.gradients.defined())
      stored.gradients = at::zeros({numel(bucket)}, options_);
    if (stored.state.empty() && !stored.counters.defined()) make_state(bucket, &stored);
  }
}

int64_t ParameterStore::numel(const Bucket& bucket) const {
  int64_t total = 0;
  for (ParameterId id : bucket.parameters) total += values_[id].numel();
  return total;
}

void ParameterStore::show_gradients(const std::vector<Bucket>& buckets,
                                    const std::vector<at::Tensor>& tensors) {
  for (size_t b = 0; b < buckets.size(); ++b)
    for (size_t i = 0; i < buckets[b].parameters.size(); ++i) {
      const ParameterId id = buckets[b].parameters[i];
      gradients_[id] = tensors[b]
                           .narrow(0, buckets[b].offsets[i], values_[id].numel())
                           .view(values_[id].sizes());
    }
}

void ParameterStore::make_state(const Bucket& bucket, Stored* stored) {
  for (size_t copy = 0; copy < bucket.state.size(); ++copy) {
    stored->state.push_back(at::zeros({numel(bucket)}, options_));
    for (size_t i = 0; i < bucket.parameters.size(); ++i) {
      const at::Tensor& value = values_[bucket.parameters[i]];
      states_[bucket.parameters[i]].push_back(
          stored->state.back().narrow(0, bucket.offsets[i], value.numel()).view(value.sizes()));
    }
  }
  if (bucket.counters < 0) return;
  stored->counters = at::zeros({std::ssize(bucket.parameters)}, at::kDouble);
  for (size_t i = 0; i < bucket.parameters.size(); ++i)
    states_[bucket.parameters[i]].push_back(stored->counters.narrow(0, static_cast<int64_t>(i), 1));
}

int64_t ParameterStore::bytes() const {
  int64_t total = 0;
  const auto add = [&](const at::Tensor& tensor) {
    if (tensor.defined()) total += static_cast<int64_t>(tensor.nbytes());
  };
  for (const at::Tensor& value : values_) add(value);
  for (const Stored& stored : buckets_) {
    add(stored.gradients);
    add(stored.counters);
    for (const at::Tensor& copy : stored.state) add(copy);
  }
  return total;
}

}  // namespace tessera
