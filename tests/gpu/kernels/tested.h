#pragma once
// What the tests of kernels for GPUs share: the table under test and where its tensors lie, views
// as an executor hands them out, and how far results may be from those of float64. A build without
// CUDA tests the CPU's tables by the same bodies, so that these run everywhere.

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace tessera::gpu_test {

inline at::Device tested_device() { return at::hasCUDA() ? at::kCUDA : at::kCPU; }

template <class Family>
const Family& tested_table() {
  if (Family::kCuda != nullptr) return *Family::kCuda;
  if constexpr (requires { Family::kCpu; })
    return Family::kCpu;
  else
    return Family::kAten;
}

/// Of families whose loops for the CPU do not take bf16.
template <class Family>
const Family& table_for(at::ScalarType type) {
  return Family::kCuda == nullptr && type == at::kBFloat16 ? Family::kAten : tested_table<Family>();
}

/// The random choices of a case. A failure names the seed.
class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}

  /// Both ends included.
  int64_t between(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine_);
  }
  int64_t one_of(std::initializer_list<int64_t> values) {
    return values.begin()[between(0, static_cast<int64_t>(values.size()) - 1)];
  }
  /// Float64, on the host.
  at::Tensor uniform(at::IntArrayRef shape, double low, double high) {
    return at::empty(shape, at::kDouble)
        .uniform_(low, high, at::make_generator<at::CPUGeneratorImpl>(engine_()));
  }

 private:
  std::mt19937_64 engine_;
};

enum class Order { kChannelsLast, kContiguous };

/// A view with the tensor's numbers on the tested device: the interior of a larger buffer, whose
/// margins stay what they were. Margins may be empty along any axis but the channels'.
class Interior {
 public:
  Interior(Random& random, Order order, const at::Tensor& numbers, at::ScalarType type) {
    std::vector<int64_t> shape = numbers.sizes().vec(), begins(shape.size(), 0);
    const bool is_dense = random.between(0, 2) == 0;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (axis == 1 || is_dense) continue;
      begins[axis] = random.between(0, 2);
      shape[axis] += begins[axis] + random.between(0, 2);
    }
    buffer_ = at::full(shape, kMargin, at::TensorOptions().dtype(type).device(tested_device()));
    if (order == Order::kChannelsLast) buffer_ = buffer_.movedim(1, -1).contiguous().movedim(-1, 1);
    view_ = buffer_;
    for (size_t axis = 0; axis < shape.size(); ++axis)
      view_ = view_.narrow(static_cast<int64_t>(axis), begins[axis],
                           numbers.size(static_cast<int64_t>(axis)));
    view_.copy_(numbers);
  }

  operator const at::Tensor&() const { return view_; }
  const at::Tensor& view() const { return view_; }
  /// As the type has rounded them.
  at::Tensor exact() const { return view_.to(at::kCPU, at::kDouble); }
  void expect_margins_untouched() const {
    const at::Tensor copy = buffer_.clone();
    view_.fill_(kMargin);
    EXPECT_TRUE((buffer_ == kMargin).all().item<bool>()) << "something was written beside the view";
    buffer_.copy_(copy);
  }

 private:
  static constexpr double kMargin = 77;
  at::Tensor buffer_, view_;
};

/// Numbers that are stored in this type, computed in float32 or, for float64, in that.
inline double rounding_of(at::ScalarType type) {
  return type == at::kDouble ? 1e-12 : type == at::kFloat ? 1e-5 : 1.0 / 256;
}

/// Relative to the largest number, at least to 1.
inline void expect_near(const at::Tensor& found, const at::Tensor& expected, double limit) {
  ASSERT_EQ(found.sizes(), expected.sizes());
  if (found.numel() == 0) return;
  const at::Tensor a = found.to(at::kCPU, at::kDouble), b = expected.to(at::kCPU, at::kDouble);
  const double scale = std::max(at::nan_to_num(b, 0, 0, 0).abs().max().item<double>(), 1.0);
  EXPECT_TRUE(a.allclose(b, 0, limit * scale, /*equal_nan=*/true))
      << "largest difference " << (a - b).abs().max().item<double>() << " of " << scale;
}

inline constexpr std::initializer_list<at::ScalarType> kRealTypes{at::kDouble, at::kFloat,
                                                                  at::kBFloat16};

/// Calls check(random, type) for many seeds and the types.
template <class Check>
void for_many_cases(uint64_t count, std::initializer_list<at::ScalarType> types,
                    const Check& check) {
  for (uint64_t seed = 0; seed < count; ++seed)
    for (const at::ScalarType type : types) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << " in " << type);
      Random random(seed);
      check(random, type);
    }
}

}  // namespace tessera::gpu_test
