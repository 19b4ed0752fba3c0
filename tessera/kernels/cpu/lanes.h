#pragma once
// Sums of many terms in float64. The compiler may not change the order of one sum, so it leaves it
// scalar; eight sums side by side are a vector register, and their order is the same everywhere.

#include <cstdint>

namespace tessera {

/// Independent partial sums, which the compiler may keep in one vector register.
struct Lanes {
  static constexpr int kCount = 8;
  double value[kCount] = {};
  double sum() const {
    double total = 0;
    for (double lane : value) total += lane;
    return total;
  }
};

/// Adds term(0), ..., term(n - 1).
template <class Term>
inline void accumulate(Lanes& lanes, int64_t n, Term&& term) {
  Lanes local = lanes;
  int64_t i = 0;
  for (; i + Lanes::kCount <= n; i += Lanes::kCount)
    for (int lane = 0; lane < Lanes::kCount; ++lane) local.value[lane] += term(i + lane);
  for (int lane = 0; i < n; ++i, ++lane) local.value[lane] += term(i);
  lanes = local;
}

}  // namespace tessera
