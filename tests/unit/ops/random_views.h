#pragma once
// The random choices of the operator tests: how an output is cut into pieces, and how the tensors
// of a piece lie in memory. Executors hand out views with margins and odd strides; these are worse.

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "tests/unit/ops/op_harness.h"

namespace tessera {

class Draw {
 public:
  explicit Draw(uint64_t seed) : engine_(seed) {}

  /// Both ends included.
  int64_t between(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine_);
  }
  template <class T>
  void shuffle(std::vector<T>& items) {
    std::shuffle(items.begin(), items.end(), engine_);
  }
  at::Tensor uniform(const Shape& shape, double low, double high) {
    return at::empty(shape, at::kDouble).uniform_(low, high, generator());
  }
  at::Tensor labels(const Shape& shape, int64_t num_classes) {
    return at::empty(shape, at::kLong).random_(0, num_classes, generator());
  }

 private:
  at::Generator generator() { return at::make_generator<at::CPUGeneratorImpl>(engine_()); }
  std::mt19937_64 engine_;
};

/// A view in a bigger tensor of NaN (of a wild label, for indices).
struct Surrounded {
  at::Tensor surroundings;
  at::Tensor view;

  bool surroundings_untouched() const;
};

/// Axes may also lie in another order in memory, so that the last one is not the contiguous one.
Surrounded surrounded(Draw& draw, const Shape& shape, at::ScalarType type);

/// A view with the tensor's values, surrounded.
at::Tensor strided_copy(Draw& draw, const at::Tensor& tensor);

/// Between `needed` and the whole, and equal to `needed` at about half of its faces.
Box draw_readable_box(Draw& draw, const Box& needed, const Shape& shape);

/// An irregular grid of non-empty pieces, in row-major order; channels are never cut.
std::vector<Box> cut_output(Draw& draw, const ValueType& type, const HarnessOptions& options);

}  // namespace tessera
