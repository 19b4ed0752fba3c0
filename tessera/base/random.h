#pragma once
// Counter-based random numbers: each is a function of (key, index) alone, so that weights, dropout
// masks and synthetic data do not depend on which rank draws them, in what order, or how many ranks
// there are.
//
// Example:
//   RandomKey key = RandomKey(seed).with("enc1.0.weight");
//   double u = key.uniform(global_index);   // in [0, 1)

#include <cmath>
#include <cstdint>
#include <string_view>

namespace tessera {

class RandomKey {
 public:
  explicit RandomKey(uint64_t seed) : state_(mix(seed + kGolden)) {}

  /// The key whose state() was this: all that a device needs to draw the same numbers.
  static constexpr RandomKey of_state(uint64_t state) { return RandomKey(state, IsState{}); }
  constexpr uint64_t state() const { return state_; }

  /// A key of its own for a name or a number (an operator, a step).
  RandomKey with(std::string_view name) const {
    uint64_t hash = 0xcbf29ce484222325ULL;  // FNV-1a
    for (unsigned char c : name) hash = (hash ^ c) * 0x100000001b3ULL;
    return with(hash);
  }
  RandomKey with(uint64_t number) const {
    RandomKey key = *this;
    key.state_ = mix(mix(state_ + kGolden) ^ mix(number + 0x632be59bd9b4e019ULL));
    return key;
  }

  constexpr uint64_t bits(uint64_t index) const { return bits_at(state_, index); }
  /// The same of anything with the arithmetic of a uint64_t: many indices at once, and a state that
  /// only a device knows.
  template <class Word>
  static constexpr Word bits_at(const Word& state, const Word& index) {
    return mix(mix(index * kGolden + state) ^ state);
  }
  /// In [0, 1), with 53 bits.
  double uniform(uint64_t index) const {
    return static_cast<double>(bits(index) >> 11) * 0x1.0p-53;
  }
  /// Standard normal, by Box and Muller's method on two draws of this index.
  double normal(uint64_t index) const {
    const double radius = 1.0 - uniform(2 * index);  // in (0, 1]: the logarithm stays finite
    const double angle = uniform(2 * index + 1);
    return std::sqrt(-2.0 * std::log(radius)) * std::cos(6.283185307179586 * angle);
  }

 private:
  struct IsState {};
  constexpr RandomKey(uint64_t state, IsState) : state_(state) {}

  static constexpr uint64_t kGolden = 0x9e3779b97f4a7c15ULL;
  template <class Word>
  static constexpr Word mix(Word z) {  // the finaliser of SplitMix64
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  uint64_t state_;
};

}  // namespace tessera
