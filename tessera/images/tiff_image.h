#pragma once
// What one directory of a TIFF says of its pixels, checked: how they are laid out in blocks (tiles
// or strips), and how a block is read.

#include <cstdint>
#include <string>

#include "tessera/images/pixel_type.h"
#include "tessera/images/tiff_handle.h"

namespace tessera {

/// How the pixels of a directory come into memory.
enum class TiffAccess {
  kBlocks,   // a tile or strip is decoded whole
  kRows,     // a strip too large for that is decoded row by row
  kFlat,     // rows of uncompressed strips are read from the file, where they lie
  kColours,  // libtiff makes RGB of it: YCbCr that is not JPEG, and JPEG of the old kind
};

struct TiffImage {
  uint64_t directory = 0;
  int64_t width = 0, height = 0;
  int64_t samples = 1;  // numbers of a pixel
  bool planar = false;  // each sample is an image of its own
  PixelType type = PixelType::kUint8;
  int bits = 8;  // of a sample, packed where they are fewer than the type's
  bool tiled = false;
  int64_t block_width = 0, block_height = 0;
  int64_t row_bytes = 0;  // of a block, as libtiff gives it
  TiffAccess access = TiffAccess::kBlocks;
  bool swap_bytes = false;  // the file has the other byte order; kFlat only

  int64_t samples_in_block() const { return planar ? 1 : samples; }
  /// Whether both can be pages, or levels but for their size, of one array.
  bool same_pixels(const TiffImage& other) const {
    return samples == other.samples && planar == other.planar && type == other.type;
  }
  bool same_size(const TiffImage& other) const {
    return width == other.width && height == other.height;
  }
};

/// Of the directory where the handle is, which is made ready to decode. Throws InvalidInput or
/// Unsupported for pixels that cannot be read.
TiffImage describe_tiff_image(TiffHandle& handle);

/// Goes to the image's directory, ready to decode.
void go_to_image(TiffHandle& handle, const TiffImage& image);

}  // namespace tessera
