#pragma once
// Puts a TIFF together from tiles that are compressed already: BigTIFF, deflate, with the size of
// pixels and the place on a map that the frame has.

#include <functional>
#include <string>

#include "tessera/files/temporary_file.h"
#include "tessera/images/tiff_tiles.h"

namespace tessera {

/// `tile_of` gives the compressed bytes of a tile, which live until its next call. Throws
/// InvalidInput where the file cannot be written.
void encode_tiff(TemporaryFile& target, const std::string& path, const ArrayInfo& info,
                 const TiffTiles& tiles, const std::function<std::string&(int64_t)>& tile_of);

}  // namespace tessera
