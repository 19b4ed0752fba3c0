#include "tessera/data/png.h"

#include <png.h>

#include "tessera/base/error.h"
#include "tessera/files/atomic_file.h"

namespace tessera {
namespace {

void check_image(const PngImage& image) {
  if (image.width < 1 || image.height < 1 || image.width > PNG_USER_WIDTH_MAX ||
      image.height > PNG_USER_HEIGHT_MAX)
    throw_error<InvalidInput>("[png] {} x {} pixels; a picture has 1 x 1 to {} x {}", image.width,
                              image.height, PNG_USER_WIDTH_MAX, PNG_USER_HEIGHT_MAX);
  if (image.channels != 1 && image.channels != 3)
    throw_error<InvalidInput>("[png] {} channels; a picture has 1 or 3", image.channels);
  // Sides have at most 31 bits, so 64 bits without a sign hold their product.
  const uint64_t needed = static_cast<uint64_t>(image.width) * static_cast<uint64_t>(image.height) *
                          static_cast<uint64_t>(image.channels);
  if (needed != image.pixels.size())
    throw_error<InvalidInput>("[png] {} bytes of pixels; {} x {} with {} channels has {}",
                              image.pixels.size(), image.width, image.height, image.channels,
                              needed);
}

}  // namespace

// libpng's simplified interface returns from errors, where the other jumps over destructors.
void check_png_support() {}

std::string encode_png(const PngImage& image) {
  check_image(image);
  png_image request{};
  request.version = PNG_IMAGE_VERSION;
  request.width = static_cast<png_uint_32>(image.width);
  request.height = static_cast<png_uint_32>(image.height);
  request.format = image.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(request);
  std::string bytes(size, '\0');
  if (png_image_write_to_memory(&request, bytes.data(), &size, /*convert_to_8_bit=*/0,
                                image.pixels.data(), /*row_stride=*/0, /*colormap=*/nullptr) == 0)
    throw_error<InvalidInput>("[png] libpng does not write {} x {} pixels: {}; use .npy",
                              image.width, image.height, request.message);
  bytes.resize(size);
  return bytes;
}

void write_png(const std::string& path, const PngImage& image) {
  write_file_atomically(path, encode_png(image));
}

}  // namespace tessera
