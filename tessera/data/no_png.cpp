// Compiled instead of png.cpp where there is no libpng.

#include "tessera/base/error.h"
#include "tessera/data/png.h"

namespace tessera {

std::string encode_png(const PngImage& image) {
  throw_error<Unsupported>(
      "[png] this build cannot write pictures ({} x {}); install libpng-dev and build again",
      image.width, image.height);
}

void write_png(const std::string&, const PngImage& image) { encode_png(image); }

}  // namespace tessera
