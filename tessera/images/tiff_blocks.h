#pragma once
// Decodes the tiles or strips of a TIFF that a box meets, and copies what the box has of them.

#include <array>

#include "tessera/geometry/range.h"
#include "tessera/images/tiff_image.h"

namespace tessera {

/// A part of an image and the dense memory that it goes to: rows, columns and samples, or samples,
/// rows and columns where the image is planar.
struct TiffTarget {
  Range rows, columns, samples;
  bool planar = false;
  char* data = nullptr;
  /// What a block is made of that the file leaves out: the first bytes of it are one element.
  std::array<char, 8> left_out = {};

  int64_t bytes(PixelType type) const {
    return rows.size() * columns.size() * samples.size() * bytes_of(type);
  }
};

void read_tiff_image(TiffHandle& handle, const InputFile& file, const TiffImage& image,
                     const TiffTarget& target);

}  // namespace tessera
