#pragma once
// How the array of a TIFF that Tessera writes lies in tiles: pages, planes, tiles of a plane, and
// the scratch file in which each tile has a slot of its own until all are compressed.
//
//   scratch:  | bytes of each compressed tile, 8 each | slot of tile 0 | slot of tile 1 | ...
//
// A slot is as large as a tile can be after compression, so a tile is compressed in its place.

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
  int64_t slot_bytes() const;
  int64_t slot_offset(int64_t tile) const { return num_tiles() * 8 + tile * slot_bytes(); }
  int64_t scratch_bytes() const { return slot_offset(num_tiles()); }
};

/// Throws InvalidInput for an array that is not pages of images: its axes end in YX or YXC; a C
/// before YX is planes, and what comes before is pages. Without axes all but the last two are
/// pages.
TiffTiles tiles_of(const ArrayInfo& info, const std::string& path);

}  // namespace tessera
