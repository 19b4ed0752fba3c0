#pragma once
// A .npy file as an array that is read by boxes. The file is mapped into memory, so only the pages
// that a box touches are read from disk, and ranks of one machine share them.
//
// Reading is const and thread-safe. A file that another process cuts short while it is mapped ends
// the process with SIGBUS; replace files by renaming, as NpyWriter does.
//
// Example:
//   NpyArray images("images.npy");
//   images.read(Box{{3, 4}, {0, 1}, {0, 256}, {256, 512}}, target);

#include <ATen/ATen.h>

#include <string>

#include "tessera/data/npy_header.h"

namespace tessera {

class NpyArray {
 public:
  /// Throws InvalidInput where the file cannot be opened or parse_npy_header refuses it.
  explicit NpyArray(std::string path);
  ~NpyArray();
  NpyArray(const NpyArray&) = delete;
  NpyArray& operator=(const NpyArray&) = delete;

  const std::string& path() const { return path_; }
  NpyType type() const { return header_.type; }
  const Shape& shape() const { return header_.shape; }

  /// Converts the box into `target`: a view of as many elements in the same order (axes of size 1
  /// may be missing), of a real type, or int64 for integers. Throws InvalidInput for an int64
  /// target of a real file.
  void read(const Box& box, at::Tensor target) const;

 private:
  std::string path_;
  NpyHeader header_;
  const char* file_ = nullptr;
  int64_t file_bytes_ = 0;
};

}  // namespace tessera
