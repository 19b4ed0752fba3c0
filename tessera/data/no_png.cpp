// Compiled instead of png.cpp where there is no libpng.

#include "tessera/base/error.h"
#include "tessera/data/png.h"

namespace tessera {

void check_png_support() {
  throw_error<Unsupported>(
      "[png] this build cannot write pictures; install libpng-dev and build again");
}

std::string encode_png(const PngImage&) {
  check_png_support();
  return {};
}

void write_png(const std::string&, const PngImage& image) { encode_png(image); }

}  // namespace tessera
