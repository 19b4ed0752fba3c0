#include "tessera/images/tiff_tiles.h"

#include <zlib.h>

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/images/flat_array.h"

namespace tessera {
namespace {

constexpr int64_t kTileSide = 512;
constexpr int64_t kMaxTileBytes = 4 << 20;
constexpr int64_t kMaxTiffSide = 0x7fffffff;
constexpr int64_t kMaxTiffSamples = 65535;

/// A multiple of 16, as the format wants it.
int64_t tile_side(int64_t size, int64_t most) { return std::min(most, (size + 15) / 16 * 16); }

}  // namespace

int64_t TiffTiles::pixels_of(int64_t tile) const {
  const int64_t top = tile / columns() % rows() * tile_height;
  const int64_t left = tile % columns() * tile_width;
  return std::min(tile_height, height - top) * std::min(tile_width, width - left);
}

Shape TiffTiles::block(const Shape& shape) const {
  Shape block(static_cast<size_t>(num_page_axes + (has_plane_axis(shape) ? 1 : 0)), 1);
  block.push_back(tile_height);
  block.push_back(tile_width);
  if (channels_last) block.push_back(samples);
  return block;
}

int64_t TiffTiles::slot_bytes() const {
  return static_cast<int64_t>(compressBound(static_cast<uLong>(tile_bytes())));
}

TiffTiles tiles_of(const ArrayInfo& info, const std::string& path) {
  checked_array_bytes(info.shape, info.type, "tiff", path);
  std::string axes = info.axes;
  if (axes.empty() && info.shape.size() >= 2) axes = std::string(info.shape.size() - 2, 'P') + "YX";
  TiffTiles tiles;
  tiles.channels_last = axes.ends_with("YXC");
  const bool planar = axes.ends_with("CYX");
  if (axes.size() != info.shape.size() || (!tiles.channels_last && !axes.ends_with("YX")))
    throw_error<InvalidInput>(
        "[tiff] cannot write {}: an array of {}; a TIFF is height x width, with channels before or "
        "after them and pages before all: use .npy",
        path, to_string(info.shape));
  tiles.num_page_axes = static_cast<int>(axes.size() - (planar || tiles.channels_last ? 3 : 2));
  auto size = info.shape.begin();
  for (int axis = 0; axis < tiles.num_page_axes; ++axis) tiles.num_pages *= *size++;
  if (planar) tiles.num_planes = *size++;
  tiles.height = *size++;
  tiles.width = *size++;
  if (tiles.channels_last) tiles.samples = *size;
  if (Box::whole(info.shape).empty() || tiles.height > kMaxTiffSide || tiles.width > kMaxTiffSide ||
      std::max(tiles.samples, tiles.num_planes) > kMaxTiffSamples)
    throw_error<InvalidInput>(
        "[tiff] cannot write {}: an array of {}; legal: 1 to {} pixels a side, 1 to {} channels",
        path, to_string(info.shape), kMaxTiffSide, kMaxTiffSamples);
  tiles.element = bytes_of(info.type);
  int64_t side = kTileSide;
  while (side > 16 && side * side * tiles.samples * tiles.element > kMaxTileBytes) side /= 2;
  tiles.tile_height = tile_side(tiles.height, side);
  tiles.tile_width = tile_side(tiles.width, side);
  return tiles;
}

}  // namespace tessera
