#pragma once
// Contents that tell which message they belong to, and the same random choices on every rank.

#include <cstdint>
#include <random>
#include <vector>

namespace tessera {

/// The id of the n-th message of an ordered pair.
inline uint64_t message_id(int from, int to, int n) {
  return (static_cast<uint64_t>(from) << 40) | (static_cast<uint64_t>(to) << 20) |
         static_cast<uint64_t>(n);
}

/// `bytes` bytes that depend on `id` and on the position.
inline std::vector<char> pattern(uint64_t id, int64_t bytes) {
  std::vector<char> data(bytes);
  uint64_t state = id * 0x9E3779B97F4A7C15ull + 1;
  for (char& byte : data) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    byte = static_cast<char>(state >> 56);
  }
  return data;
}

/// Often nothing, mostly small, now and then more than a megabyte.
inline int64_t random_size(std::mt19937_64& random) {
  switch (random() % 16) {
    case 0:
    case 1:
      return 0;
    case 2:
      return static_cast<int64_t>(random() % 200'000);
    default:
      return static_cast<int64_t>(random() % 700);
  }
}

}  // namespace tessera
