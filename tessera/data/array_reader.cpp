#include "tessera/data/array_reader.h"

#include "tessera/base/error.h"
#include "tessera/data/box_rows.h"
#include "tessera/data/typed_pixels.h"

namespace tessera {
namespace {

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

template <class Source, class T>
void convert(const ArrayFile& file, const Box& box, const Shape& strides, T* data) {
  std::vector<Source> numbers;
  const int64_t most = kConvertedAtOnce / static_cast<int64_t>(sizeof(Source));
  for_each_strip(box, file.info().block, most, [&](const Box& strip) {
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
