#pragma once
// A .npy file as an array that is read by boxes: only the rows of a box are read from disk, and
// ranks of one machine share them in the system's cache.
//
// Reading is const and thread-safe. A file that another process cuts short meanwhile is
// InvalidInput (files/input_file.h); replace files by renaming, as NpyWriter does.
//
// Example:
//   NpyArray images("images.npy");
//   images.read(Box{{3, 4}, {0, 1}, {0, 256}, {256, 512}}, target);

#include <ATen/ATen.h>

#include <string>

#include "tessera/data/npy_header.h"
#include "tessera/files/input_file.h"

namespace tessera {

class NpyArray {
 public:
  /// Throws InvalidInput where the file cannot be opened or parse_npy_header refuses it.
  explicit NpyArray(const std::string& path);

  const std::string& path() const { return file_.path(); }
  NpyType type() const { return header_.type; }
  const Shape& shape() const { return header_.shape; }

  /// Converts the box into `target`: a view of as many elements in the same order (axes of size 1
  /// may be missing), of a real type, or int64 for integers. Throws InvalidInput for an int64
  /// target of a real file.
  void read(const Box& box, at::Tensor target) const;

 private:
  InputFile file_;
  NpyHeader header_;
};

}  // namespace tessera
