#pragma once
// How the array of a TIFF that Tessera writes lies in tiles: pages, planes, tiles of a plane, and
// where each has its slot in the scratch file (tiff_slots.h).

#include <string>

#include "tessera/images/array_file.h"

namespace tessera {

struct TiffTiles {
  int64_t num_pages = 1;
  int64_t num_planes = 1;  // of a page; channels before Y
  int64_t samples = 1;     // of a pixel; channels after X
  int64_t height = 0, width = 0;
  int64_t tile_height = 0, tile_width = 0;
  int64_t element = 1;  // bytes
  bool channels_last = false;
  int num_page_axes = 0;

  int64_t rows() const { return (height + tile_height - 1) / tile_height; }
  int64_t columns() const { return (width + tile_width - 1) / tile_width; }
  int64_t tiles_of_page() const { return num_planes * rows() * columns(); }
  int64_t num_tiles() const { return num_pages * tiles_of_page(); }
  int64_t tile_bytes() const { return tile_height * tile_width * samples * element; }
  /// Of a tile, without what lies outside of the image.
  int64_t pixels_of(int64_t tile) const;
  bool has_plane_axis(const Shape& shape) const {
    return std::ssize(shape) == num_page_axes + 3 && !channels_last;
  }
  /// A tile as a part of the array of that shape.
  Shape block(const Shape& shape) const;
  int64_t slot_bytes() const;
  int64_t slot_offset(int64_t tile) const { return num_tiles() * 8 + tile * slot_bytes(); }
  int64_t scratch_bytes() const { return slot_offset(num_tiles()); }
};

/// Throws InvalidInput for an array that is not pages of images: its axes end in YX or YXC; a C
/// before YX is planes, and what comes before is pages. Without axes all but the last two are
/// pages.
TiffTiles tiles_of(const ArrayInfo& info, const std::string& path);

}  // namespace tessera
