#include "tessera/images/tiff_slots.h"

#include <zlib.h>

#include <cstring>
#include <new>

#include "tessera/base/error.h"

namespace tessera {

TiffSlots::TiffSlots(const std::string& path, const std::string& temporary, const TiffTiles& tiles)
    : tiles_(tiles),
      scratch_(scratch_path(path), temporary, tiles.scratch_bytes(),
               SharedOutput::Space::kAsWritten) {}

void TiffSlots::write(const TilePart& part) {
  const TiffTiles& tiles = tiles_;
  const int64_t pixel = tiles.samples * tiles.element;
  const int64_t numbers = part.rows.size() * part.columns.size() * part.samples.size();
  const int64_t all = tiles.pixels_of(part.tile) * tiles.samples;
  if (numbers == all) {
    std::string whole(static_cast<size_t>(tiles.tile_bytes()), '\0');
    for (int64_t row = 0; row < part.rows.size(); ++row)
      std::memcpy(whole.data() + row * tiles.tile_width * pixel, part.data + row * part.row_bytes,
                  static_cast<size_t>(part.columns.size() * pixel));
    return store_compressed(part.tile, whole);
  }
  for (int64_t row = part.rows.begin; row < part.rows.end; ++row)
    write_row(part.tile, row * tiles.tile_width + part.columns.begin, part,
              part.data + (row - part.rows.begin) * part.row_bytes);
  {
    const std::lock_guard lock(mutex_);
    int64_t& brought = brought_[part.tile];
    brought += numbers;
    if (brought < all) return;
    brought_.erase(part.tile);
  }
  compress_in_place(reopened(), part.tile);
}

/// One row of the part, all samples of its pixels or some.
void TiffSlots::write_row(int64_t tile, int64_t first_pixel, const TilePart& part,
                          const char* from) {
  const int64_t slot = tiles_.slot_offset(tile);
  const int64_t kept = part.samples.size() * tiles_.element;
  if (part.samples.size() == tiles_.samples) {
    scratch_.file().write_at(from, static_cast<size_t>(part.columns.size() * kept),
                             slot + first_pixel * kept);
    return;
  }
  for (int64_t i = 0; i < part.columns.size(); ++i)
    scratch_.file().write_at(
        from + i * kept, static_cast<size_t>(kept),
        slot + ((first_pixel + i) * tiles_.samples + part.samples.begin) * tiles_.element);
}

void TiffSlots::finish(int64_t begin, int64_t end) {
  const InputFile file = reopened();
  for (int64_t tile = begin; tile < end; ++tile)
    if (compressed_bytes(file, tile) == 0) compress_in_place(file, tile);
}

std::string& TiffSlots::take(int64_t tile) {
  if (!taken_from_) taken_from_.emplace(reopened());
  if (compressed_bytes(*taken_from_, tile) == 0) compress_in_place(*taken_from_, tile);
  taken_.resize(compressed_bytes(*taken_from_, tile));
  const int64_t slot = tiles_.slot_offset(tile);
  taken_from_->read_at(static_cast<uint64_t>(slot), taken_.data(), taken_.size());
  scratch_.file().release(slot, tiles_.slot_bytes());
  return taken_;
}

uint64_t TiffSlots::compressed_bytes(const InputFile& file, int64_t tile) {
  uint64_t bytes = 0;
  file.read_at(static_cast<uint64_t>(tile * 8), &bytes, sizeof(bytes));
  return bytes;
}

void TiffSlots::compress_in_place(const InputFile& file, int64_t tile) {
  std::string pixels(static_cast<size_t>(tiles_.tile_bytes()), '\0');
  file.read_at(static_cast<uint64_t>(tiles_.slot_offset(tile)), pixels.data(), pixels.size());
  store_compressed(tile, pixels);
}

void TiffSlots::store_compressed(int64_t tile, const std::string& pixels) {
  const int64_t slot = tiles_.slot_offset(tile);
  std::string packed(static_cast<size_t>(tiles_.slot_bytes()), '\0');
  uLongf bytes = packed.size();
  const int result = compress2(reinterpret_cast<Bytef*>(packed.data()), &bytes,
                               reinterpret_cast<const Bytef*>(pixels.data()), pixels.size(),
                               Z_DEFAULT_COMPRESSION);
  if (result == Z_MEM_ERROR) throw std::bad_alloc();
  TESSERA_CHECK(result == Z_OK, "zlib answers {} for {} bytes", result, pixels.size());
  const uint64_t length = bytes;
  scratch_.file().write_at(packed.data(), length, slot);
  scratch_.file().release(slot + static_cast<int64_t>(length),
                          tiles_.slot_bytes() - static_cast<int64_t>(length));
  scratch_.file().write_at(&length, sizeof(length), tile * 8);
}

}  // namespace tessera
