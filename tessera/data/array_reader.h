#pragma once
// Boxes of an image file as tensors: numbers of any type in the file, converted into whatever view
// the reader brings.
//
// Reading is const and thread-safe. A file that another process cuts short meanwhile is
// InvalidInput (files/input_file.h); replace files by renaming, as ArrayWriter does.
//
// Example:
//   ArrayReader images("images.npy");
//   images.read(Box{{3, 4}, {0, 1}, {0, 256}, {256, 512}}, target);

#include <ATen/ATen.h>

#include <memory>
#include <string>

#include "tessera/images/open_array.h"

namespace tessera {

class ArrayReader {
 public:
  explicit ArrayReader(std::shared_ptr<const ArrayFile> file) : file_(std::move(file)) {}
  /// Throws what open_array throws.
  explicit ArrayReader(const std::string& path) : file_(open_array(path)) {}

  const ArrayFile& file() const { return *file_; }
  const std::string& path() const { return file_->path(); }
  PixelType type() const { return file_->type(); }
  const Shape& shape() const { return file_->shape(); }

  /// Converts the box into `target`: a view of as many elements in the same order (axes of size 1
  /// may be missing), of a real type, or int64 for integers. Throws InvalidInput for an int64
  /// target of a real file.
  void read(const Box& box, at::Tensor target) const;

 private:
  std::shared_ptr<const ArrayFile> file_;
};

}  // namespace tessera
