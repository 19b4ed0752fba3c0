#include "tessera/images/tiff_image.h"

#include <tiffio.h>

#include <algorithm>

#include "tessera/base/error.h"

namespace tessera {
namespace {

/// A strip larger than this is not decoded whole.
constexpr int64_t kMaxStripBytes = 64 << 20;

template <class Number>
Number tiff_tag(tiff* file, uint32_t tag, Number otherwise) {
  Number number = otherwise;
  return TIFFGetFieldDefaulted(file, tag, &number) == 1 ? number : otherwise;
}

/// Codecs that can give their pixels in more than one form give the plain one.
void choose_decoded_form(tiff* file) {
  const auto compression = tiff_tag<uint16_t>(file, TIFFTAG_COMPRESSION, COMPRESSION_NONE);
  const auto photometric = tiff_tag<uint16_t>(file, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
  const auto planes = tiff_tag<uint16_t>(file, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
  if (compression == COMPRESSION_JPEG && photometric == PHOTOMETRIC_YCBCR &&
      planes == PLANARCONFIG_CONTIG)
    TIFFSetField(file, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
  if (compression == COMPRESSION_SGILOG || compression == COMPRESSION_SGILOG24)
    TIFFSetField(file, TIFFTAG_SGILOGDATAFMT, SGILOGDATAFMT_FLOAT);
}

bool needs_colours(tiff* file) {
  const auto compression = tiff_tag<uint16_t>(file, TIFFTAG_COMPRESSION, COMPRESSION_NONE);
  const auto photometric = tiff_tag<uint16_t>(file, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
  return compression == COMPRESSION_OJPEG ||
         (photometric == PHOTOMETRIC_YCBCR && compression != COMPRESSION_JPEG);
}

PixelType type_of_samples(TiffHandle& handle, int bits) {
  const auto format = tiff_tag<uint16_t>(handle.get(), TIFFTAG_SAMPLEFORMAT, SAMPLEFORMAT_UINT);
  const bool is_unsigned = format == SAMPLEFORMAT_UINT || format == SAMPLEFORMAT_VOID;
  if (is_unsigned && bits >= 1 && bits <= 8) return PixelType::kUint8;
  if (is_unsigned && bits > 8 && bits <= 16) return PixelType::kUint16;
  if (is_unsigned && bits == 32) return PixelType::kUint32;
  if (is_unsigned && bits == 64) return PixelType::kUint64;
  if (format == SAMPLEFORMAT_INT) {
    if (bits == 8) return PixelType::kInt8;
    if (bits == 16) return PixelType::kInt16;
    if (bits == 32) return PixelType::kInt32;
    if (bits == 64) return PixelType::kInt64;
  }
  if (format == SAMPLEFORMAT_IEEEFP) {
    if (bits == 16) return PixelType::kFloat16;
    if (bits == 32) return PixelType::kFloat32;
    if (bits == 64) return PixelType::kFloat64;
  }
  handle.refuse(fmt::format(
      "samples of {} bits and format {} are not read; legal: unsigned integers of 1 to 16, 32 or "
      "64 bits, signed ones of 8, 16, 32 or 64, floats of 16, 32 or 64",
      bits, format));
}

void take_blocks(TiffHandle& handle, TiffImage* image) {
  tiff* const file = handle.get();
  image->tiled = TIFFIsTiled(file) != 0;
  if (image->tiled) {
    image->block_width = tiff_tag<uint32_t>(file, TIFFTAG_TILEWIDTH, 0);
    image->block_height = tiff_tag<uint32_t>(file, TIFFTAG_TILELENGTH, 0);
  } else {
    image->block_width = image->width;
    image->block_height =
        std::min<int64_t>(image->height, tiff_tag<uint32_t>(file, TIFFTAG_ROWSPERSTRIP, 0));
  }
  if (image->block_width < 1 || image->block_height < 1)
    handle.refuse(fmt::format("{} of {} x {} pixels", image->tiled ? "tiles" : "strips",
                              image->block_width, image->block_height));
}

/// The bytes of a row, which libtiff must see as we do.
int64_t bytes_of_row(TiffHandle& handle, const TiffImage& image) {
  int64_t bits = 0;
  if (__builtin_mul_overflow(image.block_width * image.samples_in_block(), int64_t{image.bits},
                             &bits))
    handle.refuse("rows of more bits than 64 bits count");
  const int64_t bytes = (bits + 7) / 8;
  const uint64_t expected =
      image.tiled ? TIFFTileRowSize64(handle.get()) : TIFFScanlineSize64(handle.get());
  if (static_cast<uint64_t>(bytes) != expected)
    handle.refuse(
        fmt::format("a row of {} samples of {} bits takes {} bytes in libtiff; this "
                    "layout is not read",
                    image.block_width * image.samples_in_block(), image.bits, expected));
  return bytes;
}

TiffAccess access_of(TiffHandle& handle, const TiffImage& image) {
  tiff* const file = handle.get();
  const bool plain = tiff_tag<uint16_t>(file, TIFFTAG_COMPRESSION, 1) == COMPRESSION_NONE &&
                     tiff_tag<uint16_t>(file, TIFFTAG_FILLORDER, 1) == FILLORDER_MSB2LSB;
  if (plain && !image.tiled && image.bits == 8 * bytes_of(image.type)) return TiffAccess::kFlat;
  int64_t bytes = 0;
  if (__builtin_mul_overflow(image.row_bytes, image.block_height, &bytes)) bytes = INT64_MAX;
  if (!image.tiled && bytes > kMaxStripBytes && image.row_bytes <= kMaxTiffBytes)
    return TiffAccess::kRows;
  if (bytes > kMaxTiffBytes)
    handle.refuse(fmt::format("{} of {} x {} pixels have {} bytes; at most {} are decoded at once",
                              image.tiled ? "tiles" : "strips", image.block_width,
                              image.block_height, bytes, kMaxTiffBytes));
  return TiffAccess::kBlocks;
}

}  // namespace

TiffImage describe_tiff_image(TiffHandle& handle) {
  tiff* const file = handle.get();
  choose_decoded_form(file);
  TiffImage image;
  image.directory = TIFFCurrentDirOffset(file);
  image.width = tiff_tag<uint32_t>(file, TIFFTAG_IMAGEWIDTH, 0);
  image.height = tiff_tag<uint32_t>(file, TIFFTAG_IMAGELENGTH, 0);
  if (image.width < 1 || image.height < 1)
    handle.refuse(fmt::format("an image of {} x {} pixels", image.width, image.height));
  if (tiff_tag<uint32_t>(file, TIFFTAG_IMAGEDEPTH, 1) != 1)
    handle.refuse(
        "an image with a depth in one directory is not read; write a page for each slice");
  take_blocks(handle, &image);
  if (needs_colours(file)) {
    image.samples = 3;
    image.access = TiffAccess::kColours;
    if (image.block_width * image.block_height > kMaxTiffBytes / 4)
      handle.refuse(fmt::format("{} x {} pixels are too many to be made RGB at once",
                                image.block_width, image.block_height));
    return image;
  }
  image.samples = std::max<int64_t>(1, tiff_tag<uint16_t>(file, TIFFTAG_SAMPLESPERPIXEL, 1));
  image.planar = tiff_tag<uint16_t>(file, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG) ==
                     PLANARCONFIG_SEPARATE &&
                 image.samples > 1;
  image.bits = tiff_tag<uint16_t>(file, TIFFTAG_BITSPERSAMPLE, 1);
  image.type = type_of_samples(handle, image.bits);
  image.row_bytes = bytes_of_row(handle, image);
  image.access = access_of(handle, image);
  image.swap_bytes = TIFFIsByteSwapped(file) != 0;
  return image;
}

void go_to_image(TiffHandle& handle, const TiffImage& image) {
  if (handle.go_to(image.directory)) choose_decoded_form(handle.get());
}

}  // namespace tessera
