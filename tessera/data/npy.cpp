#include "tessera/data/npy.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tessera/base/error.h"
#include "tessera/data/box_rows.h"

namespace tessera {
namespace {

/// Closes on the way out; the mapping stays.
struct OpenFile {
  explicit OpenFile(const std::string& path) : fd(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd < 0) throw_error<InvalidInput>("[npy] cannot open '{}': {}", path, std::strerror(errno));
  }
  ~OpenFile() { close(fd); }
  int fd;
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

NpyArray::NpyArray(std::string path) : path_(std::move(path)) {
  const OpenFile file(path_);
  struct stat status;
  if (fstat(file.fd, &status) != 0 || !S_ISREG(status.st_mode))
    throw_error<InvalidInput>("[npy] '{}' is not a regular file", path_);
  file_bytes_ = status.st_size;
  if (file_bytes_ == 0) throw_error<InvalidInput>("[npy] '{}' is empty", path_);
  void* memory = mmap(nullptr, static_cast<size_t>(file_bytes_), PROT_READ, MAP_SHARED, file.fd, 0);
  if (memory == MAP_FAILED)
    throw_error<InvalidInput>("[npy] cannot map '{}': {}", path_, std::strerror(errno));
  file_ = static_cast<const char*>(memory);
  try {
    header_ =
        parse_npy_header(file_, std::min(file_bytes_, kMaxNpyHeaderBytes), file_bytes_, path_);
  } catch (...) {
    munmap(memory, static_cast<size_t>(file_bytes_));
    throw;
  }
}

NpyArray::~NpyArray() { munmap(const_cast<char*>(file_), static_cast<size_t>(file_bytes_)); }

void NpyArray::read(const Box& box, at::Tensor target) const {
  TESSERA_CHECK(box.num_axes() == static_cast<int>(shape().size()) &&
                    Box::whole(shape()).contains(box) && target.numel() == box.volume(),
                "[npy] box {} of {} into {}", to_string(box), to_string(shape()),
                to_string(target.sizes().vec()));
  if (box.empty()) return;
  const Shape from = dense_strides(shape());
  const auto convert = [&]<class Source>(Source, auto* data, at::IntArrayRef strides) {
    const Shape to = strides_for(box, target.sizes(), strides);
    for_each_row(box, to, [&](const Position& at, int64_t offset) {
      int64_t index = 0;
      for (int axis = 0; axis < box.num_axes(); ++axis) index += at[axis] * from[axis];
      convert_row<Source>(
          file_ + header_.data_offset + index * static_cast<int64_t>(sizeof(Source)),
          row_length(box), data + offset, row_stride(box, to));
    });
  };
  const bool real_file = type() == NpyType::kFloat32 || type() == NpyType::kFloat64;
  if (target.scalar_type() == at::kLong && real_file)
    throw_error<InvalidInput>("[npy] {}: holds {}, where integers are needed; use |u1 to <i8",
                              path_, npy_type_name(type()));
  with_type(type(), [&](auto source) {
    const auto write = [&](auto* data, at::IntArrayRef strides) { convert(source, data, strides); };
    if (target.scalar_type() == at::kLong)
      write_labels(target, write);
    else
      write_real(target, write);
  });
}

}  // namespace tessera
