#pragma once
// A row of pixels of some channels, turned: a register for each pixel, a lane for each channel.
//
//   channel 0  [ p0 p1 p2 ... ]            p0 [ c0 c1 c2 ... ]
//   channel 1  [ p0 p1 p2 ... ]     ──►    p1 [ c0 c1 c2 ... ]
//   channel 2  [ p0 p1 p2 ... ]            p2 [ c0 c1 c2 ... ]

#include <algorithm>
#include <cstdint>

#include "tessera/kernels/cpu/bf16_registers.h"

namespace tessera {

/// Some channels, at most as many as a register has lanes.
template <class T>
struct ChannelRow {
  const T* data = nullptr;  // pixel 0 of the first
  int64_t channel_stride = 0;
  int64_t channels = 0;
  int64_t first = 0, end = 0;  // the pixels that exist; the others count as zeros
};

/// Pixels [0, count), in whole registers: up to one less than a register's more are written. Lanes
/// without a channel are zeros.
template <class T>
inline void turn_pixels(const ChannelRow<T>& row, int64_t count, Number<T>* to, int64_t to_stride) {
  constexpr int64_t kAll = kLanes<T>;
  for (int64_t pixel = 0; pixel < count; pixel += kAll, to += kAll * to_stride) {
    const int64_t first = std::clamp<int64_t>(row.first - pixel, 0, kAll);
    const int64_t end = std::clamp<int64_t>(row.end - pixel, first, kAll);
    Vector<T> square[kAll];
    const T* from = row.data + pixel;
    if (row.channels == kAll && end - first == kAll) {
      for (int64_t channel = 0; channel < kAll; ++channel, from += row.channel_stride)
        square[channel] = load(from);
    } else {
      for (int64_t channel = 0; channel < kAll; ++channel, from += row.channel_stride)
        square[channel] = channel < row.channels ? load_between(from, first, end) : Vector<T>{};
    }
    transpose<T>(square);
    for (int64_t i = 0; i < kAll; ++i) store(to + i * to_stride, square[i]);
  }
}

}  // namespace tessera
