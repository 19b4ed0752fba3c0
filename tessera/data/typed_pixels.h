#pragma once
// What reading and writing of image files have in common: numbers of any type, in parts of bounded
// size.

#include <c10/util/Half.h>

#include <algorithm>
#include <cstdint>

#include "tessera/geometry/box.h"
#include "tessera/images/pixel_type.h"

namespace tessera {

/// Bytes of a file's numbers that are converted at once.
constexpr int64_t kConvertedAtOnce = 4 << 20;

/// Calls body(Number{}) with a number of the file's type.
template <class Body>
void with_type(PixelType type, Body body) {
  switch (type) {
    case PixelType::kUint8:
      return body(uint8_t{});
    case PixelType::kInt8:
      return body(int8_t{});
    case PixelType::kUint16:
      return body(uint16_t{});
    case PixelType::kInt16:
      return body(int16_t{});
    case PixelType::kUint32:
      return body(uint32_t{});
    case PixelType::kInt32:
      return body(int32_t{});
    case PixelType::kUint64:
      return body(uint64_t{});
    case PixelType::kInt64:
      return body(int64_t{});
    case PixelType::kFloat16:
      return body(c10::Half{});
    case PixelType::kFloat32:
      return body(float{});
    case PixelType::kFloat64:
      return body(double{});
  }
}

/// Calls visit(part) for parts of the box of at most `most` elements, or of one block where that is
/// more: the box is cut along its first axis, between blocks of the file, and what is still too
/// much along the next.
void for_each_strip(const Box& box, const Shape& block, int64_t most, const auto& visit,
                    int axis = 0) {
  if (box.volume() <= most || axis >= box.num_axes()) return visit(box);
  const int64_t unit = block.empty() ? 1 : block[axis];
  const int64_t fitting = most / (box.volume() / box[axis].size());
  const int64_t height = std::max<int64_t>(1, fitting / unit) * unit;
  for (int64_t begin = box[axis].begin; begin < box[axis].end;) {
    const int64_t end = std::min(begin / unit * unit + height, box[axis].end);
    Box strip = box;
    strip[axis] = {begin, end};
    for_each_strip(strip, block, most, visit, axis + 1);
    begin = end;
  }
}

}  // namespace tessera
