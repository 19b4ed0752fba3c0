#include "tests/attack/readers/valid_images.h"

#include "tests/unit/scratch_folder.h"
#ifdef TESSERA_HAS_TIFF
#include "tests/unit/images/tiff_files.h"
#endif
#ifdef TESSERA_HAS_PNG
#include "tests/unit/images/png_files.h"
#endif
#ifdef TESSERA_HAS_JPEG
#include "tests/unit/images/jpeg_files.h"
#endif

namespace attack {

using namespace tessera;

#ifdef TESSERA_HAS_TIFF
namespace {

std::string tiff_bytes(const std::string& scratch, const TiffKind& kind, int pages = 1) {
  TIFFSetWarningHandler(nullptr);
  write_tiff(
      scratch, kind,
      [&](int page, int plane, int64_t row) {
        const int64_t bits = kind.width * kind.bits * (kind.planar ? 1 : kind.samples);
        std::string bytes;
        for (int64_t i = 0; i < (bits + 7) / 8; ++i)
          bytes += static_cast<char>(i * 3 + row * 5 + page + plane);
        return bytes;
      },
      pages);
  return read_bytes(scratch);
}

TiffKind tiled(int compression, int samples, int photometric = PHOTOMETRIC_MINISBLACK) {
  return {.width = 40,
          .height = 34,
          .samples = samples,
          .compression = compression,
          .photometric = photometric,
          .tile_width = 16,
          .tile_height = 16};
}

}  // namespace

std::vector<std::pair<std::string, std::string>> valid_tiffs(const std::string& scratch) {
  std::vector<std::pair<std::string, std::string>> files;
  const auto add = [&](const std::string& name, const TiffKind& kind, int pages = 1) {
    if (TIFFIsCODECConfigured(static_cast<uint16_t>(kind.compression)))
      files.emplace_back(name, tiff_bytes(scratch, kind, pages));
  };
  for (const auto& [name, compression] :
       {std::pair{"none", COMPRESSION_NONE}, std::pair{"LZW", COMPRESSION_LZW},
        std::pair{"PackBits", COMPRESSION_PACKBITS},
        std::pair{"deflate", COMPRESSION_ADOBE_DEFLATE}, std::pair{"Zstandard", COMPRESSION_ZSTD},
        std::pair{"LZMA", COMPRESSION_LZMA}, std::pair{"LERC", COMPRESSION_LERC},
        std::pair{"WebP", COMPRESSION_WEBP}, std::pair{"PixarLog", COMPRESSION_PIXARLOG},
        std::pair{"JPEG", COMPRESSION_JPEG}})
    add(name, tiled(compression, 3, PHOTOMETRIC_RGB));
  for (const auto& [name, compression] :
       {std::pair{"1 bit", COMPRESSION_NONE}, std::pair{"fax 2", COMPRESSION_CCITTRLE},
        std::pair{"fax 3", COMPRESSION_CCITTFAX3}, std::pair{"fax 4", COMPRESSION_CCITTFAX4}})
    add(name, {.bits = 1, .compression = compression});
  add("pages", {.bits = 16, .compression = COMPRESSION_LZW}, 3);
  add("planes", {.mode = "w8b", .samples = 2, .bits = 32, .planar = true});
  TiffKind described;
  described.tags = [](TIFF* file, int) {
    TIFFSetField(file, TIFFTAG_IMAGEDESCRIPTION,
                 "ImageJ=1\nimages=6\nslices=3\nchannels=2\nunit=um\nspacing=2.5\n");
    TIFFSetField(file, TIFFTAG_XRESOLUTION, 3.0f);
    TIFFSetField(file, TIFFTAG_YRESOLUTION, 3.0f);
  };
  add("description", described, 6);
  return files;
}
#else
std::vector<std::pair<std::string, std::string>> valid_tiffs(const std::string&) { return {}; }
#endif

#if defined(TESSERA_HAS_TIFF) && defined(TESSERA_HAS_OPENSLIDE)
std::vector<std::string> valid_slides(const std::string& scratch) {
  return {tiff_bytes(scratch, tiled(COMPRESSION_ADOBE_DEFLATE, 3, PHOTOMETRIC_RGB))};
}
#else
std::vector<std::string> valid_slides(const std::string&) { return {}; }
#endif

#ifdef TESSERA_HAS_PNG
std::vector<std::string> valid_pngs() {
  std::vector<std::string> files;
  const auto add = [&](const PngKind& kind) {
    files.push_back(png_bytes(kind, std::vector<std::string>(static_cast<size_t>(kind.height),
                                                             std::string(37 * 8, '\x37'))));
  };
  add({});
  add({.bits = 1, .interlaced = true});
  add({.bits = 16, .colour = PNG_COLOR_TYPE_RGB_ALPHA, .pixels_per_metre = 300});
  add({.bits = 4, .colour = PNG_COLOR_TYPE_PALETTE});
  return files;
}
#else
std::vector<std::string> valid_pngs() { return {}; }
#endif

#ifdef TESSERA_HAS_JPEG
std::vector<std::string> valid_jpegs() {
  return {jpeg_bytes({.components = 1}), jpeg_bytes({.components = 3}),
          jpeg_bytes({.components = 3, .progressive = true})};
}
#else
std::vector<std::string> valid_jpegs() { return {}; }
#endif

}  // namespace attack
