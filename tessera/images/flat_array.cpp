#include "tessera/images/flat_array.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/images/box_runs.h"

namespace tessera {
namespace {

/// Rows of a narrow box lie apart. Reading what is between them costs less than one call a row,
/// unless it is more than a page.
constexpr int64_t kMaxGapBytes = 4096;
constexpr int64_t kWindowBytes = 64 << 10;

/// The part of a file that was read last. Runs come in the order of the file, so one part is
/// enough.
class FileWindow {
 public:
  explicit FileWindow(const InputFile& file)
      : file_(file), held_(std::make_unique_for_overwrite<char[]>(kWindowBytes)) {}

  /// The `count` bytes at `begin`, at most kWindowBytes. Where they are not there yet, what follows
  /// is read with them, up to `end`.
  const char* at(int64_t begin, int64_t count, int64_t end) {
    if (begin < begin_ || begin + count > end_) {
      begin_ = begin;
      end_ = begin + std::min(kWindowBytes, std::max(count, end - begin));
      file_.read_at(static_cast<uint64_t>(begin_), held_.get(), static_cast<size_t>(end_ - begin_));
    }
    return held_.get() + (begin - begin_);
  }

 private:
  const InputFile& file_;
  const std::unique_ptr<char[]> held_;
  int64_t begin_ = 0, end_ = 0;
};

void swap_bytes(char* numbers, int64_t count, int64_t bytes) {
  for (int64_t i = 0; i < count; ++i) std::reverse(numbers + i * bytes, numbers + (i + 1) * bytes);
}

template <class Sizes>
Sizes reversed(Sizes sizes) {
  std::reverse(sizes.begin(), sizes.end());
  return sizes;
}

Box reversed_box(const Box& box) {
  Box result;
  for (int axis = box.num_axes() - 1; axis >= 0; --axis) result.push_back(box[axis]);
  return result;
}

/// The axes of an array along which what lies between the rows of a box is worth reading, too.
struct JoinedAxes {
  int64_t block = 1;  // elements of the array along these axes
  int64_t last = 0;   // the box's last element in a block
};

JoinedAxes joined_axes(const Shape& shape, const Box& box, int64_t bytes) {
  JoinedAxes joined;
  int64_t first = 0;  // the box's first element in a block
  for (int axis = box.num_axes() - 1; axis >= 0; --axis) {
    const int64_t gap = joined.block - (joined.last + 1 - first);
    if (box[axis].size() > 1 && gap * bytes > kMaxGapBytes) break;
    first += box[axis].begin * joined.block;
    joined.last += (box[axis].end - 1) * joined.block;
    joined.block *= shape[axis];
  }
  return joined;
}

/// Copies an array whose first axis is the fastest into one whose last axis is.
void copy_transposed(const char* from, const Shape& shape, int64_t bytes, char* to) {
  const size_t num_axes = shape.size();
  Shape steps(num_axes, 1);
  for (size_t axis = 1; axis < num_axes; ++axis) steps[axis] = steps[axis - 1] * shape[axis - 1];
  Shape at(num_axes, 0);
  int64_t index = 0;
  while (true) {
    std::memcpy(to, from + index * bytes, static_cast<size_t>(bytes));
    to += bytes;
    size_t axis = num_axes;
    while (axis-- > 0) {
      index += steps[axis];
      if (++at[axis] < shape[axis]) break;
      index -= steps[axis] * shape[axis];
      at[axis] = 0;
    }
    if (axis == static_cast<size_t>(-1)) return;
  }
}

}  // namespace

void FlatArray::read(const Box& box, void* to) const {
  TESSERA_CHECK(
      box.num_axes() == std::ssize(layout_.shape) && Box::whole(layout_.shape).contains(box),
      "[array] box {} of {}", to_string(box), to_string(layout_.shape));
  if (box.empty()) return;
  if (!layout_.fortran_order) return read_dense(layout_.shape, box, static_cast<char*>(to));
  const int64_t bytes = bytes_of(layout_.type);
  std::vector<char> transposed(static_cast<size_t>(box.volume() * bytes));
  read_dense(reversed(layout_.shape), reversed_box(box), transposed.data());
  copy_transposed(transposed.data(), box.shape(), bytes, static_cast<char*>(to));
}

void FlatArray::read_dense(const Shape& shape, const Box& box, char* to) const {
  const int64_t bytes = bytes_of(layout_.type);
  const JoinedAxes joined = joined_axes(shape, box, bytes);
  FileWindow window(file_);
  for_each_run(shape, box, [&](int64_t index, int64_t offset, int64_t count) {
    const int64_t begin = layout_.offset + index * bytes, size = count * bytes;
    char* const into = to + offset * bytes;
    if (size > kWindowBytes / 2) {
      file_.read_at(static_cast<uint64_t>(begin), into, static_cast<size_t>(size));
      return;
    }
    const int64_t end = index / joined.block * joined.block + joined.last + 1;
    std::memcpy(into, window.at(begin, size, layout_.offset + end * bytes),
                static_cast<size_t>(size));
  });
  if (layout_.swap_bytes) swap_bytes(to, box.volume(), bytes);
}

int64_t checked_array_bytes(const Shape& shape, PixelType type, const std::string& place,
                            const std::string& path) {
  int64_t bytes = bytes_of(type);
  for (int64_t size : shape) {
    if (size < 0)
      throw_error<InvalidInput>("[{}] {}: shape {} has a negative size", place, path,
                                to_string(shape));
    if (__builtin_mul_overflow(bytes, size, &bytes))
      throw_error<InvalidInput>("[{}] {}: shape {} has more bytes than 64 bits count", place, path,
                                to_string(shape));
  }
  return bytes;
}

}  // namespace tessera
