#pragma once
// An array whose numbers lie one after the other in a file, from some byte on: what .npy, .nii and
// raw files have in common. Only the rows of a box are read from disk, and ranks of one machine
// share them in the system's cache.

#include "tessera/files/input_file.h"
#include "tessera/geometry/box.h"
#include "tessera/images/pixel_type.h"

namespace tessera {

struct FlatLayout {
  int64_t offset = 0;  // in bytes; any
  Shape shape = {};
  PixelType type = PixelType::kUint8;
  bool swap_bytes = false;     // the file has the other byte order
  bool fortran_order = false;  // the first axis is the fastest
};

class FlatArray {
 public:
  /// The file must have the bytes of the layout; its owner has checked that.
  FlatArray(InputFile file, FlatLayout layout)
      : file_(std::move(file)), layout_(std::move(layout)) {}

  const InputFile& file() const { return file_; }
  const FlatLayout& layout() const { return layout_; }
  /// As ArrayFile::read.
  void read(const Box& box, void* to) const;

 private:
  void read_dense(const Shape& shape, const Box& box, char* to) const;

  InputFile file_;
  FlatLayout layout_;
};

/// The bytes of an array, or InvalidInput with [place] and the path where a size is negative or
/// they are more than 63 bits count.
int64_t checked_array_bytes(const Shape& shape, PixelType type, const std::string& place,
                            const std::string& path);

}  // namespace tessera
