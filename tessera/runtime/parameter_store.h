#pragma once
// What one rank holds from step to step: the values of its parameters, the optimiser's state, and
// the memory in which everything else comes and goes. Gradients lie in the buckets that are
// reduced: in that memory, from the first addition to a bucket until the next step, or here, where
// several steps add to them. The state is laid out like them; what belongs to one parameter is a
// view. Parameters of other stages are undefined here.

#include <vector>

#include "tessera/lower/program.h"
#include "tessera/runtime/arena.h"

namespace tessera {

class ParameterStore {
 public:
  /// Initial values by (seed, name): the same on every rank that holds them. `real` is the run's.
  /// All of it lies in the memory of `device`, which outlives it.
  ParameterStore(const Graph& graph, const std::vector<ParameterId>& held, uint64_t seed,
                 at::ScalarType real, Device& device = host_device());

  Device& device() const { return device_; }

  /// Makes the buckets of a program to which several steps add, and the state where it has some;
  /// zeros at first. Programs of one graph, plan and bucket size have the same buckets.
  void make_buckets(const Program& program);
  /// From now on gradients() are the parts of these tensors, one for each bucket.
  void show_gradients(const std::vector<Bucket>& buckets, const std::vector<at::Tensor>& tensors);

  /// As Graph::parameters(); undefined where this rank does not hold one.
  const std::vector<at::Tensor>& values() const { return values_; }
  std::vector<at::Tensor>& values() { return values_; }
  /// Those of the last step that had some. Undefined before, for buffers, and where this rank does
  /// not hold one.
  const std::vector<at::Tensor>& gradients() const { return gradients_; }
  /// The optimiser's state of each parameter: its copies, then its counter, which lies on the host;
  /// empty where there is none.
  const std::vector<std::vector<at::Tensor>>& states() const { return states_; }

  /// Undefined where steps do not add to those before.
  const at::Tensor& bucket(int index) const { return buckets_[index].gradients; }
  const at::Tensor& state(int bucket, int copy) const { return buckets_[bucket].state[copy]; }
  const at::Tensor& counters(int bucket) const { return buckets_[bucket].counters; }
  /// For the steps of all programs on these parameters.
  Arena& arena() { return arena_; }
  /// Bytes of values, gradients and state together.
  int64_t bytes() const;

 private:
  struct Stored {
    at::Tensor gradients;
    std::vector<at::Tensor> state;
    at::Tensor counters;
  };
  int64_t numel(const Bucket& bucket) const;
  void make_state(const Bucket& bucket, Stored* stored);

  Device& device_;
  const at::TensorOptions options_;  // of the numbers of parameters
  std::vector<at::Tensor> values_;
  std::vector<at::Tensor> gradients_;
  std::vector<std::vector<at::Tensor>> states_;
  std::vector<Stored> buckets_;
  Arena arena_;
};

}  // namespace tessera
