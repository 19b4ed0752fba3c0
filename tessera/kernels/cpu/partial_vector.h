#pragma once
// Registers at the ends of rows, which may be shorter than a register: any range of lanes, also one
// that begins or ends outside of the register.

#include <algorithm>
#include <cstdint>

#include "tessera/kernels/cpu/bf16_registers.h"

namespace tessera {

/// from[i] for begin <= i < end, 0 elsewhere; nothing else in memory is touched.
template <class T>
inline Vector<T> load_range(const T* from, int64_t begin, int64_t end) {
  begin = std::max<int64_t>(begin, 0);
  end = std::min<int64_t>(end, kLanes<T>);
  if (end - begin == kLanes<T>) return load(from);
  return begin < end ? load_between(from, begin, end) : Vector<T>{};
}

/// The first `count` lanes, which may be none or more than there are.
template <class T>
inline Vector<T> load_some(const T* from, int64_t count) {
  return load_range(from, 0, count);
}
template <class T>
inline void store_some(T* to, Vector<T> value, int64_t count) {
  if (count >= kLanes<T>)
    store(to, value);
  else if (count > 0)
    store_between(to, value, 0, count);
}

}  // namespace tessera
