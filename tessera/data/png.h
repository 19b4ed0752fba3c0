#pragma once
// Writes 8-bit PNG files, grey or RGB, by libpng. Without it (no_png.cpp) every call throws
// Unsupported and says what to install.
//
// Example:
//   write_png("out.png", {.width = 64, .height = 48, .channels = 3, .pixels = rgb});

#include <cstdint>
#include <string>
#include <vector>

namespace tessera {

struct PngImage {
  int64_t width = 0;
  int64_t height = 0;
  int channels = 3;             // 1 grey, 3 RGB
  std::vector<uint8_t> pixels;  // row by row, channels together
};

/// Throws Unsupported, with the remedy, where this build has no libpng; so does every call below.
void check_png_support();

/// The bytes of the file. Throws InvalidInput for a size that libpng does not write (1 to 1000000 a
/// side, as it is usually built) and for pixels that are not width x height x channels.
std::string encode_png(const PngImage& image);

/// Whole or not at all. Throws InvalidInput where the file cannot be written.
void write_png(const std::string& path, const PngImage& image);

}  // namespace tessera
