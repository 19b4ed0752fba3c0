#pragma once
// A half-open interval of global indices along one axis. All geometry is made of these: global,
// 64-bit, and free to lie outside the image (a convolution reads its padding there).

#include <algorithm>
#include <cstdint>
#include <string>

namespace tessera {

struct Range {
  int64_t begin = 0;
  int64_t end = 0;

  int64_t size() const { return end > begin ? end - begin : 0; }
  bool empty() const { return end <= begin; }
  bool contains(int64_t index) const { return begin <= index && index < end; }
  /// An empty range lies in every range.
  bool contains(const Range& other) const {
    return other.empty() || (begin <= other.begin && other.end <= end);
  }
  Range shifted(int64_t by) const { return {begin + by, end + by}; }
  bool operator==(const Range&) const = default;
};

inline Range intersect(const Range& a, const Range& b) {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}

/// The smallest range that holds both; an empty range adds nothing.
inline Range hull(const Range& a, const Range& b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  return {std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

std::string to_string(const Range& range);

}  // namespace tessera
