#pragma once
// PNG files of every kind, encoded by libpng, for the tests of readers.

#include <png.h>

#include <string>
#include <vector>

namespace tessera {

struct PngKind {
  int64_t width = 37, height = 29;
  int bits = 8;
  int colour = PNG_COLOR_TYPE_GRAY;
  bool interlaced = false;
  double pixels_per_metre = 0;
};

/// The file whose packed rows these are; 16 bits in the order of the file, high byte first.
inline std::string png_bytes(const PngKind& kind, std::vector<std::string> rows) {
  std::string bytes;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &bytes,
      [](png_structp file, png_bytep data, size_t count) {
        static_cast<std::string*>(png_get_io_ptr(file))
            ->append(reinterpret_cast<const char*>(data), count);
      },
      [](png_structp) {});
  png_set_IHDR(png, info, static_cast<uint32_t>(kind.width), static_cast<uint32_t>(kind.height),
               kind.bits, kind.colour, kind.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  std::vector<png_color> palette(256, png_color{9, 9, 9});
  if (kind.colour == PNG_COLOR_TYPE_PALETTE)
    png_set_PLTE(png, info, palette.data(), 1 << kind.bits);
  if (kind.pixels_per_metre > 0)
    png_set_pHYs(png, info, static_cast<uint32_t>(kind.pixels_per_metre),
                 static_cast<uint32_t>(2 * kind.pixels_per_metre), PNG_RESOLUTION_METER);
  png_write_info(png, info);
  std::vector<png_bytep> pointers;
  for (std::string& row : rows) pointers.push_back(reinterpret_cast<png_bytep>(row.data()));
  png_write_image(png, pointers.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return bytes;
}

}  // namespace tessera
