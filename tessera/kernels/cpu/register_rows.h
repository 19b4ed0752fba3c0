#pragma once
// A row of numbers register by register, of which the last may be a part.
//
// Example:
//   for_registers<T>(n, [&](int64_t i, auto count) {
//     store_part(out + i, 2 * load_part(in + i, count), count);
//   });

#include <cstdint>
#include <type_traits>

#include "tessera/kernels/cpu/bf16_registers.h"

namespace tessera {

template <class T>
using WholeRegister = std::integral_constant<int64_t, kLanes<T>>;

/// Calls visit(i, count) for the numbers i .. i + count - 1 of n. The count is a WholeRegister but
/// for the last.
template <class T, class Visit>
inline void for_registers(int64_t n, Visit&& visit) {
  int64_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) visit(i, WholeRegister<T>());
  if (i < n) visit(i, n - i);
}

/// Asks for what a walk along memory reads soon. Machines see for themselves what comes next, but
/// not beyond the end of a page.
template <class T>
inline void fetch_ahead(const T* from) {
  constexpr int64_t kBytesAhead = 4096;
  __builtin_prefetch(from + kBytesAhead / sizeof(T));
}

/// The first `count` numbers, and zeros.
template <class T, class Count>
inline Vector<T> load_part(const T* from, Count count) {
  if constexpr (std::is_same_v<Count, WholeRegister<T>>) return load(from);
  return load_between(from, 0, count);
}

template <class T, class Count>
inline void store_part(T* to, const Vector<T>& numbers, Count count) {
  if constexpr (std::is_same_v<Count, WholeRegister<T>>)
    store(to, numbers);
  else
    store_between(to, numbers, 0, count);
}

}  // namespace tessera
