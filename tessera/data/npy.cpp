#include "tessera/data/npy.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "tessera/base/error.h"
#include "tessera/data/box_rows.h"

namespace tessera {
namespace {

/// Rows of a narrow box lie apart. Reading what is between them costs less than one call a row,
/// unless it is more than a page.
constexpr int64_t kMaxGapBytes = 4096;

/// The part of a file that was read last. Rows come in the order of the file, so one part is
/// enough.
class FileWindow {
 public:
  static constexpr int64_t kBytes = 64 << 10;

  explicit FileWindow(const InputFile& file)
      : file_(file), held_(std::make_unique_for_overwrite<char[]>(kBytes)) {}

  /// The `count` bytes at `begin`, at most kBytes. Where they are not there yet, what follows is
  /// read with them, up to `end`.
  const char* at(int64_t begin, int64_t count, int64_t end) {
    if (begin < begin_ || begin + count > end_) {
      begin_ = begin;
      end_ = begin + std::min(kBytes, std::max(count, end - begin));
      file_.read_at(static_cast<uint64_t>(begin_), held_.get(), static_cast<size_t>(end_ - begin_));
    }
    return held_.get() + (begin - begin_);
  }

 private:
  const InputFile& file_;
  const std::unique_ptr<char[]> held_;
  int64_t begin_ = 0, end_ = 0;
};

/// Calls body(Source{}) with a number of the file's type.
template <class Body>
void with_type(NpyType type, Body body) {
  switch (type) {
    case NpyType::kFloat32:
      return body(float{});
    case NpyType::kFloat64:
      return body(double{});
    case NpyType::kUint8:
      return body(uint8_t{});
    case NpyType::kUint16:
      return body(uint16_t{});
    case NpyType::kInt16:
      return body(int16_t{});
    case NpyType::kInt32:
      return body(int32_t{});
    case NpyType::kInt64:
      return body(int64_t{});
  }
}

/// Elements per step of each axis in the file.
Shape dense_strides(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (size_t axis = shape.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * shape[axis];
  return strides;
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
    TESSERA_CHECK(from >= 0 && sizes[from] == box[axis].size(), "[npy] box {} into a target of {}",
                  to_string(box), to_string(sizes.vec()));
    result[axis] = strides[from--];
  }
  return result;
}

/// The data may lie at any byte: a header of odd length is legal.
template <class Source, class T>
void convert_row(const char* from, int64_t count, T* to, int64_t stride) {
  for (int64_t i = 0; i < count; ++i) {
    Source number;
    std::memcpy(&number, from + i * static_cast<int64_t>(sizeof number), sizeof number);
    to[i * stride] = static_cast<T>(number);
  }
}

}  // namespace

NpyArray::NpyArray(const std::string& path) : file_(path, "npy") {
  const auto file_bytes = static_cast<int64_t>(file_.size());
  std::string beginning(static_cast<size_t>(std::min(file_bytes, kMaxNpyHeaderBytes)), '\0');
  file_.read_at(0, beginning.data(), beginning.size());
  header_ =
      parse_npy_header(beginning.data(), static_cast<int64_t>(beginning.size()), file_bytes, path);
}

void NpyArray::read(const Box& box, at::Tensor target) const {
  TESSERA_CHECK(box.num_axes() == static_cast<int>(shape().size()) &&
                    Box::whole(shape()).contains(box) && target.numel() == box.volume(),
                "[npy] box {} of {} into {}", to_string(box), to_string(shape()),
                to_string(target.sizes().vec()));
  if (box.empty()) return;
  const Shape from = dense_strides(shape());
  const int last = box.num_axes() - 1;
  const auto convert = [&]<class Source>(Source, auto* data, at::IntArrayRef strides) {
    constexpr auto kElement = static_cast<int64_t>(sizeof(Source));
    constexpr int64_t kAtOnce = FileWindow::kBytes / kElement;
    const Shape to = strides_for(box, target.sizes(), strides);
    const int64_t stride = row_stride(box, to), row = row_length(box);
    const int64_t pitch = last > 0 ? from[last - 1] : row;
    const bool reads_on = (pitch - row) * kElement <= kMaxGapBytes;
    FileWindow window(file_);
    for_each_row(box, to, [&](const Position& at, int64_t offset) {
      int64_t index = 0;
      for (int axis = 0; axis <= last; ++axis) index += at[axis] * from[axis];
      const int64_t rows_left = reads_on && last > 0 ? box[last - 1].end - at[last - 1] : 1;
      const int64_t end = index + (rows_left - 1) * pitch + row;
      for (int64_t done = 0; done < row; done += kAtOnce) {
        const int64_t count = std::min(kAtOnce, row - done);
        const char* bytes = window.at(header_.data_offset + (index + done) * kElement,
                                      count * kElement, header_.data_offset + end * kElement);
        convert_row<Source>(bytes, count, data + offset + done * stride, stride);
      }
    });
  };
  const bool real_file = type() == NpyType::kFloat32 || type() == NpyType::kFloat64;
  if (target.scalar_type() == at::kLong && real_file)
    throw_error<InvalidInput>("[npy] {}: holds {}, where integers are needed; use |u1 to <i8",
                              path(), npy_type_name(type()));
  with_type(type(), [&](auto source) {
    const auto write = [&](auto* data, at::IntArrayRef strides) { convert(source, data, strides); };
    if (target.scalar_type() == at::kLong)
      write_labels(target, write);
    else
      write_real(target, write);
  });
}

}  // namespace tessera
