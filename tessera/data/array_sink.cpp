#include "tessera/data/array_sink.h"

#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/data/box_rows.h"
#include "tessera/data/typed_pixels.h"

namespace tessera {
namespace {

/// What the file stores for a number of the source.
template <class T, class Source>
T stored(Source number, const ArrayWriter& writer) {
  if constexpr (std::is_integral_v<T>) {
    if (!std::in_range<T>(number))
      throw_error<InvalidInput>("[file] {}: {} does not fit the file's type, {} to {}; use int64",
                                writer.path(), number, std::numeric_limits<T>::min(),
                                std::numeric_limits<T>::max());
  }
  return static_cast<T>(number);
}

template <class T>
void write_numbers(ArrayWriter& writer, const Box& box, const at::Tensor& source) {
  // Half has no loops of its own on the CPU.
  using Wide = std::conditional_t<std::is_same_v<T, c10::Half>, float, T>;
  using Source = std::conditional_t<std::is_integral_v<T>, int64_t, Wide>;
  if (std::is_integral_v<T> && source.is_floating_point())
    throw_error<InvalidInput>("[file] {}: real numbers into a file of {}; use float32",
                              writer.path(), name_of(writer.type()));
  const at::Tensor host = source.to(at::kCPU, c10::CppTypeToScalarType<Source>::value);
  const int64_t most = kConvertedAtOnce / static_cast<int64_t>(sizeof(T));
  std::vector<T> numbers;
  for_each_strip(box, writer.info().block, most, [&](const Box& strip) {
    int64_t begin = 0;
    for (int axis = 0; axis < box.num_axes(); ++axis)
      begin += (strip[axis].begin - box[axis].begin) * host.stride(axis);
    const Source* const data = host.data_ptr<Source>() + begin;
    const int64_t stride = row_stride(strip, host.strides());
    numbers.clear();
    for_each_row(strip, host.strides(), [&](const Position&, int64_t offset) {
      for (int64_t i = 0; i < row_length(strip); ++i)
        numbers.push_back(stored<T>(data[offset + i * stride], writer));
    });
    writer.write(strip, numbers.data());
  });
}

}  // namespace

void write_tensor(ArrayWriter& writer, const Box& box, const at::Tensor& source) {
  check_request("array sink", writer.shape(), box, source);
  if (box.empty()) return;
  with_type(writer.type(), [&]<class T>(T) { write_numbers<T>(writer, box, source); });
}

}  // namespace tessera
