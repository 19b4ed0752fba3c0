#pragma once
// TIFF files of every kind that libtiff writes, for the tests of readers.

#include <tiffio.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tessera {

struct TiffKind {
  std::string mode = "w";  // w8: BigTIFF; b: big-endian
  int64_t width = 61, height = 47;
  int samples = 1;
  int bits = 8;
  int format = SAMPLEFORMAT_UINT;
  int compression = COMPRESSION_NONE;
  int photometric = PHOTOMETRIC_MINISBLACK;
  bool planar = false;
  int tile_width = 0, tile_height = 0;  // 0: strips
  int rows_per_strip = 7;
  int predictor = 0;
  /// Sets tags of a page.
  std::function<void(TIFF*, int page)> tags = [](TIFF*, int) {};
};

/// The bytes of a row of packed samples, as libtiff takes it.
using TiffRow = std::function<std::string(int page, int plane, int64_t row)>;

/// Writes pages of one kind; false where libtiff cannot.
inline bool write_tiff_page(TIFF* file, const TiffKind& kind, int page, const TiffRow& row_of) {
  TIFFSetField(file, TIFFTAG_IMAGEWIDTH, static_cast<uint32_t>(kind.width));
  TIFFSetField(file, TIFFTAG_IMAGELENGTH, static_cast<uint32_t>(kind.height));
  TIFFSetField(file, TIFFTAG_SAMPLESPERPIXEL, kind.samples);
  TIFFSetField(file, TIFFTAG_BITSPERSAMPLE, kind.bits);
  TIFFSetField(file, TIFFTAG_SAMPLEFORMAT, kind.format);
  TIFFSetField(file, TIFFTAG_PLANARCONFIG,
               kind.planar ? PLANARCONFIG_SEPARATE : PLANARCONFIG_CONTIG);
  if (TIFFSetField(file, TIFFTAG_COMPRESSION, kind.compression) != 1) return false;
  TIFFSetField(file, TIFFTAG_PHOTOMETRIC, kind.photometric);
  if (kind.predictor != 0) TIFFSetField(file, TIFFTAG_PREDICTOR, kind.predictor);
  kind.tags(file, page);
  const int planes = kind.planar ? kind.samples : 1;
  if (kind.tile_width == 0) {
    TIFFSetField(file, TIFFTAG_ROWSPERSTRIP, kind.rows_per_strip);
    for (int plane = 0; plane < planes; ++plane)
      for (int64_t y = 0; y < kind.height; y += kind.rows_per_strip) {
        std::string strip;
        for (int64_t row = y; row < std::min(y + kind.rows_per_strip, kind.height); ++row)
          strip += row_of(page, plane, row);
        const uint32_t index =
            TIFFComputeStrip(file, static_cast<uint32_t>(y), static_cast<uint16_t>(plane));
        if (TIFFWriteEncodedStrip(file, index, strip.data(), std::ssize(strip)) < 0) return false;
      }
    return true;
  }
  TIFFSetField(file, TIFFTAG_TILEWIDTH, kind.tile_width);
  TIFFSetField(file, TIFFTAG_TILELENGTH, kind.tile_height);
  const auto row_bytes = static_cast<size_t>(TIFFTileRowSize(file));
  const size_t bits = static_cast<size_t>(kind.bits * (kind.planar ? 1 : kind.samples));
  for (int plane = 0; plane < planes; ++plane)
    for (int64_t y = 0; y < kind.height; y += kind.tile_height)
      for (int64_t x = 0; x < kind.width; x += kind.tile_width) {
        std::string tile(static_cast<size_t>(TIFFTileSize(file)), '\0');
        for (int64_t row = y; row < std::min(y + kind.tile_height, kind.height); ++row) {
          const std::string all = row_of(page, plane, row);
          const size_t begin = static_cast<size_t>(x) * bits / 8;
          const std::string part = all.substr(begin, row_bytes);
          tile.replace(static_cast<size_t>(row - y) * row_bytes, part.size(), part);
        }
        if (TIFFWriteTile(file, tile.data(), static_cast<uint32_t>(x), static_cast<uint32_t>(y), 0,
                          static_cast<uint16_t>(plane)) < 0)
          return false;
      }
  return true;
}

inline bool write_tiff(const std::string& path, const TiffKind& kind, const TiffRow& row_of,
                       int pages = 1) {
  TIFF* const file = TIFFOpen(path.c_str(), kind.mode.c_str());
  if (file == nullptr) return false;
  bool done = true;
  for (int page = 0; page < pages && done; ++page) {
    done = write_tiff_page(file, kind, page, row_of);
    if (done && pages > 1) done = TIFFWriteDirectory(file) == 1;
  }
  TIFFClose(file);
  return done;
}

}  // namespace tessera
