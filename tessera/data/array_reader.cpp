#include "tessera/data/array_reader.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/data/box_rows.h"

namespace tessera {
namespace {

constexpr int64_t kBytesAtOnce = 4 << 20;  // of a strip, at least a row of the first axis

/// Calls body(Source{}) with a number of the file's type.
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

/// Strides of a view of the box's elements in the box's axes: the target may lack axes of size 1.
Shape strides_for(const Box& box, at::IntArrayRef sizes, at::IntArrayRef strides) {
  Shape result(static_cast<size_t>(box.num_axes()), 0);
  int64_t from = static_cast<int64_t>(sizes.size()) - 1;
  for (int axis = box.num_axes() - 1; axis >= 0; --axis) {
    if (box[axis].size() == 1) {
      if (from >= 0 && sizes[from] == 1) --from;
      continue;
    }
    TESSERA_CHECK(from >= 0 && sizes[from] == box[axis].size(),
                  "[array] box {} into a target of {}", to_string(box), to_string(sizes.vec()));
    result[axis] = strides[from--];
  }
  return result;
}

/// Cuts the box along its first axis of more than one element, and that again along the next where
/// one element of it is still too much.
void for_each_strip(const Box& box, int64_t most, const auto& visit) {
  int axis = 0;
  while (axis < box.num_axes() && box[axis].size() == 1) ++axis;
  if (box.volume() <= most || axis >= box.num_axes()) return visit(box);
  const int64_t height = std::max<int64_t>(1, most / (box.volume() / box[axis].size()));
  for (int64_t begin = box[axis].begin; begin < box[axis].end; begin += height) {
    Box strip = box;
    strip[axis] = {begin, std::min(begin + height, box[axis].end)};
    for_each_strip(strip, most, visit);
  }
}

template <class Source, class T>
void convert(const ArrayFile& file, const Box& box, const Shape& strides, T* data) {
  std::vector<Source> numbers;
  for_each_strip(box, kBytesAtOnce / static_cast<int64_t>(sizeof(Source)), [&](const Box& strip) {
    numbers.resize(static_cast<size_t>(strip.volume()));
    file.read(strip, numbers.data());
    int64_t begin = 0;
    for (int axis = 0; axis < box.num_axes(); ++axis)
      begin += (strip[axis].begin - box[axis].begin) * strides[axis];
    const int64_t stride = row_stride(strip, strides), row = row_length(strip);
    const Source* from = numbers.data();
    for_each_row(strip, strides, [&](const Position&, int64_t offset) {
      T* const to = data + begin + offset;
      for (int64_t i = 0; i < row; ++i) to[i * stride] = static_cast<T>(from[i]);
      from += row;
    });
  });
}

}  // namespace

void ArrayReader::read(const Box& box, at::Tensor target) const {
  TESSERA_CHECK(box.num_axes() == std::ssize(shape()) && Box::whole(shape()).contains(box) &&
                    target.numel() == box.volume(),
                "[array] box {} of {} into {}", to_string(box), to_string(shape()),
                to_string(target.sizes().vec()));
  if (box.empty()) return;
  if (target.scalar_type() == at::kLong && is_real(type()))
    throw_error<InvalidInput>("[data] {}: holds {}, where integers are needed", path(),
                              name_of(type()));
  with_type(type(), [&]<class Source>(Source) {
    const auto write = [&](auto* data, at::IntArrayRef strides) {
      convert<Source>(*file_, box, strides_for(box, target.sizes(), strides), data);
    };
    if (target.scalar_type() == at::kLong)
      write_labels(target, write);
    else
      write_real(target, write);
  });
}

}  // namespace tessera
