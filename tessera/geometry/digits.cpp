#include "tessera/geometry/digits.h"

namespace tessera {

std::vector<int64_t> digit_weights(std::span<const int64_t> sizes) {
  std::vector<int64_t> weights(sizes.size(), 1);
  for (size_t i = sizes.size(); i-- > 1;) weights[i - 1] = weights[i] * sizes[i];
  return weights;
}

std::vector<std::vector<Range>> digit_parts(const Range& range, std::span<const int64_t> sizes) {
  if (range.empty()) return {};
  if (sizes.empty()) return {{}};
  if (sizes.size() == 1) return {{range}};
  const std::span<const int64_t> lower = sizes.subspan(1);
  int64_t step = 1;
  for (int64_t size : lower) step *= size;
  std::vector<std::vector<Range>> parts;
  const auto add_within = [&](int64_t digit, const Range& rest) {
    for (std::vector<Range>& part : digit_parts(rest, lower)) {
      part.insert(part.begin(), {digit, digit + 1});
      parts.push_back(std::move(part));
    }
  };
  const int64_t first = range.begin / step, last = range.end / step;
  const int64_t head = range.begin % step, tail = range.end % step;
  if (first == last) {
    add_within(first, {head, tail});
    return parts;
  }
  if (head > 0) add_within(first, {head, step});
  const Range whole{first + (head > 0 ? 1 : 0), last};
  if (!whole.empty()) {
    std::vector<Range>& part = parts.emplace_back(std::vector<Range>{whole});
    for (int64_t size : lower) part.push_back({0, size});
  }
  if (tail > 0) add_within(last, {0, tail});
  return parts;
}

}  // namespace tessera
