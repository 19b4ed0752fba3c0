#pragma once
// Terms whose sum shows in its bits in which order it was added, and that sum.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "tessera/comm/collective.h"

namespace tessera {

template <class T>
constexpr SumType kTypeOf = sizeof(T) == 4 ? SumType::kFloat32 : SumType::kFloat64;

/// What `rank` contributes: of widely different sizes.
template <class T>
std::vector<T> terms_of(int rank, int64_t count) {
  std::mt19937_64 random(rank * 7919 + count);
  std::vector<T> terms(count);
  for (T& term : terms) {
    const double mantissa = static_cast<double>(random()) / 1e19 - 0.9;
    term = static_cast<T>(mantissa * std::pow(10.0, static_cast<double>(random() % 9)));
  }
  return terms;
}

/// The elements that member `index` sums: an even part, the first members have one more.
inline int64_t end_of_part(int64_t index, int64_t members, int64_t count) {
  return (index + 1) * (count / members) + std::min(index + 1, count % members);
}

/// The terms of an element that member m sums lie around a circle: first m's own, then that of the
/// member before it, and so on. As long as there are several, the second half is added to the
/// first, which has one more where they are odd.
template <class T>
std::vector<T> folded_sum(const Members& members, int64_t count) {
  const int size = static_cast<int>(members.size());
  std::vector<std::vector<T>> terms;
  for (int rank : members) terms.push_back(terms_of<T>(rank, count));
  std::vector<T> sums(count);
  for (int64_t i = 0, summed_by = 0; i < count; ++i) {
    while (i >= end_of_part(summed_by, size, count)) ++summed_by;
    std::vector<T> circle;
    for (int64_t before = 0; before < size; ++before)
      circle.push_back(terms[(summed_by + size - before) % size][i]);
    while (circle.size() > 1) {
      const size_t half = (circle.size() + 1) / 2;
      for (size_t k = half; k < circle.size(); ++k) circle[k - half] += circle[k];
      circle.resize(half);
    }
    sums[i] = circle[0];
  }
  return sums;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

}  // namespace tessera
