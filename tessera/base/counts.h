#pragma once
// Products of counts that users give. Each factor is legal by itself; together they may not fit 64
// bits, and a product that has wrapped around would pass any limit.
//
// Example:
//   if (product_of({workers, pieces, micro_batches}) > kMost) throw_error<InvalidInput>(...);

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>

namespace tessera {

/// Steps, epochs and other things that are only counted: a sum of many stays inside 64 bits, and
/// nobody lives to see the end.
inline constexpr int64_t kMostCounted = int64_t{1} << 40;

/// Of factors that are 0 or more; the largest number there is where the product is not smaller.
inline int64_t product_of(std::span<const int64_t> factors) {
  int64_t product = 1;
  bool overflows = false;
  for (int64_t factor : factors) {
    if (factor == 0) return 0;
    overflows |= __builtin_mul_overflow(product, factor, &product);
  }
  return overflows ? std::numeric_limits<int64_t>::max() : product;
}
inline int64_t product_of(std::initializer_list<int64_t> factors) {
  return product_of(std::span(factors.begin(), factors.size()));
}

}  // namespace tessera
