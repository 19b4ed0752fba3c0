#pragma once
// Draws of a random network, all from one generator, so that a seed replays a case.

#include <cstdint>
#include <random>
#include <vector>

namespace tessera {

class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}

  /// In [low, high].
  int64_t integer(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  /// In [low, high).
  double real(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random_);
  }
  bool chance(double probability) { return real(0, 1) < probability; }
  template <class T>
  const T& one_of(const std::vector<T>& choices) {
    return choices[integer(0, std::ssize(choices) - 1)];
  }
  std::vector<int64_t> per_axis(int num_axes, int64_t low, int64_t high) {
    std::vector<int64_t> values;
    for (int i = 0; i < num_axes; ++i) values.push_back(integer(low, high));
    return values;
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace tessera
