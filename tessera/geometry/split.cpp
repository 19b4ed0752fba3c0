#include "tessera/geometry/split.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/geometry/divide.h"

namespace tessera {
namespace {

// Products of two 64-bit sizes: the axis may be as long as int64_t allows.
using Wide = __int128;

void check_arguments(int64_t size, int64_t parts, int64_t align) {
  if (size < 0) throw_error<InvalidInput>("[split] size must be at least 0, got {}", size);
  if (parts < 1) throw_error<InvalidInput>("[split] parts must be at least 1, got {}", parts);
  if (align < 1) throw_error<InvalidInput>("[split] align must be at least 1, got {}", align);
}

/// The largest divisor of `value` that is at most `limit`, for limit >= 1.
int64_t largest_divisor(int64_t value, int64_t limit) {
  int64_t best = 1;
  for (int64_t divisor = 1; divisor <= value / divisor; ++divisor) {
    if (value % divisor != 0) continue;
    if (value / divisor <= limit) return value / divisor;
    if (divisor <= limit) best = divisor;
  }
  return best;
}

/// Where part `index` begins. Rounding index * units / parts down is what makes splits nest: the
/// quotient is the same for (index * p) of (parts * p).
int64_t cut(int64_t size, int64_t parts, int64_t index, int64_t align) {
  const int64_t units = ceil_div(size, align);
  const Wide position = Wide{index} * units / parts * align;
  return static_cast<int64_t>(std::min(Wide{size}, position));
}

}  // namespace

int64_t effective_align(int64_t size, int64_t parts, int64_t align) {
  check_arguments(size, parts, align);
  if (size < parts) return 1;
  if (parts == 1) return align;
  // The last part is not empty when parts - 1 whole units leave something of the axis.
  const int64_t largest_unit = (size - 1) / (parts - 1);
  return align <= largest_unit ? align : largest_divisor(align, largest_unit);
}

Range split(int64_t size, int64_t parts, int64_t index, int64_t align) {
  const int64_t unit = effective_align(size, parts, align);
  if (index < 0 || index >= parts)
    throw_error<InvalidInput>("[split] index must lie in 0:{}, got {}", parts, index);
  return {cut(size, parts, index, unit), cut(size, parts, index + 1, unit)};
}

}  // namespace tessera
