// TIFF files of every layout, type and compression that libtiff writes here: any box is what the
// whole file has there, by any number of threads.

#include <gtest/gtest.h>

#include <random>

#include "tessera/base/error.h"
#include "tessera/images/open_array.h"
#include "tests/unit/images/array_boxes.h"
#include "tests/unit/images/tiff_files.h"
#include "tests/unit/refusal.h"
#include "tests/unit/scratch_folder.h"

namespace tessera::tiff_test {
namespace {

/// Noise that differs from row to row, plane to plane and page to page.
TiffRow noise(const TiffKind& kind) {
  const size_t bits =
      static_cast<size_t>(kind.width * kind.bits * (kind.planar ? 1 : kind.samples));
  return [bytes = (bits + 7) / 8, bits](int page, int plane, int64_t row) {
    std::mt19937_64 random(static_cast<uint64_t>(page * 7919 + plane * 104729 + row));
    std::string result(bytes, '\0');
    for (char& byte : result) byte = static_cast<char>(random() >> 24);
    if (bits % 8 != 0) result.back() = static_cast<char>(result.back() & 0xff << (8 - bits % 8));
    return result;
  };
}

/// A picture that lossy codecs keep.
TiffRow slope(const TiffKind& kind) {
  return [kind](int page, int plane, int64_t row) {
    std::string result;
    for (int64_t x = 0; x < kind.width; ++x)
      for (int c = 0; c < (kind.planar ? 1 : kind.samples); ++c)
        result += static_cast<char>((x * 2 + row + (c + plane) * 40 + page * 9) % 256);
    return result;
  };
}

/// All rows as they were written, in the order of the array.
std::string all_rows(const TiffKind& kind, const TiffRow& row_of, int pages) {
  std::string whole;
  for (int page = 0; page < pages; ++page)
    for (int plane = 0; plane < (kind.planar ? kind.samples : 1); ++plane)
      for (int64_t row = 0; row < kind.height; ++row) whole += row_of(page, plane, row);
  return whole;
}

class TiffTest : public ::testing::Test {
 protected:
  TiffTest() {
    TIFFSetWarningHandler(nullptr);
    TIFFSetErrorHandler(nullptr);
  }

  std::unique_ptr<ArrayFile> open(const ArrayOptions& options = {}) {
    return open_array(path_, options);
  }

  /// Written and read back, whole and by boxes.
  void expect_lossless(const TiffKind& kind, int pages = 1) {
    ASSERT_TRUE(write_tiff(path_, kind, noise(kind), pages));
    const auto file = open();
    const std::string whole = read_whole(*file);
    EXPECT_EQ(whole == all_rows(kind, noise(kind), pages), true);
    expect_boxes_of(*file, whole, 6, 2);
  }

  /// Of the file as it is now, opened anew; empty where it is refused.
  std::string pixels_of(const Box& box) {
    try {
      return read_box(*open(), box);
    } catch (const InvalidInput&) {
      return "";
    }
  }

  /// Where in the file the strips lie.
  std::pair<size_t, size_t> bytes_of_strips() {
    TIFF* const file = TIFFOpen(path_.c_str(), "r");
    const uint32_t last = TIFFNumberOfStrips(file) - 1;
    const size_t begin = TIFFGetStrileOffset(file, 0);
    const size_t end = TIFFGetStrileOffset(file, last) + TIFFGetStrileByteCount(file, last);
    TIFFClose(file);
    return {begin, end};
  }

  const ScratchFolder folder_{ScratchFolder::Medium::kMemory};
  const std::string path_ = folder_ / "a.tif";
};

std::string name_of_kind(const TiffKind& kind) {
  return fmt::format("mode {} bits {} format {} samples {} planar {} tile {}x{} rows {} codec {}",
                     kind.mode, kind.bits, kind.format, kind.samples, kind.planar, kind.tile_width,
                     kind.tile_height, kind.rows_per_strip, kind.compression);
}

/// Strips of several heights, tiles of several sizes, one and three samples, together and apart.
std::vector<TiffKind> layouts_of(TiffKind kind) {
  std::vector<TiffKind> kinds;
  for (const int samples : {1, 3})
    for (const bool planar : {false, true}) {
      if (samples == 1 && planar) continue;
      for (const int block : {0, 1, 2, 3}) {
        kind.samples = samples;
        kind.planar = planar;
        kind.photometric = samples == 3 ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISBLACK;
        kind.tile_width = block == 2 ? 16 : block == 3 ? 64 : 0;
        kind.tile_height = block == 2 ? 32 : block == 3 ? 16 : 0;
        kind.rows_per_strip = block == 0 ? 7 : 1000;
        kinds.push_back(kind);
      }
    }
  return kinds;
}

TEST_F(TiffTest, EveryTypeLayoutAndByteOrder) {
  struct Case {
    int bits, format;
    PixelType type;
  };
  for (const Case& c :
       {Case{8, SAMPLEFORMAT_UINT, PixelType::kUint8}, Case{8, SAMPLEFORMAT_INT, PixelType::kInt8},
        Case{16, SAMPLEFORMAT_UINT, PixelType::kUint16},
        Case{16, SAMPLEFORMAT_INT, PixelType::kInt16},
        Case{32, SAMPLEFORMAT_UINT, PixelType::kUint32},
        Case{32, SAMPLEFORMAT_INT, PixelType::kInt32},
        Case{64, SAMPLEFORMAT_UINT, PixelType::kUint64},
        Case{64, SAMPLEFORMAT_INT, PixelType::kInt64},
        Case{16, SAMPLEFORMAT_IEEEFP, PixelType::kFloat16},
        Case{32, SAMPLEFORMAT_IEEEFP, PixelType::kFloat32},
        Case{64, SAMPLEFORMAT_IEEEFP, PixelType::kFloat64}})
    for (const char* mode : {"w", "w8", "wb"})
      for (const int compression : {COMPRESSION_NONE, COMPRESSION_LZW})
        for (const TiffKind& kind : layouts_of(
                 {.mode = mode, .bits = c.bits, .format = c.format, .compression = compression})) {
          SCOPED_TRACE(name_of_kind(kind));
          expect_lossless(kind);
          EXPECT_EQ(open()->type(), c.type);
        }
}

TEST_F(TiffTest, EveryLosslessCompression) {
  for (const int compression :
       {COMPRESSION_PACKBITS, COMPRESSION_ADOBE_DEFLATE, COMPRESSION_DEFLATE, COMPRESSION_LZMA,
        COMPRESSION_ZSTD, COMPRESSION_LERC})
    for (TiffKind kind : layouts_of({.bits = 8, .compression = compression})) {
      if (!TIFFIsCODECConfigured(static_cast<uint16_t>(compression))) continue;
      SCOPED_TRACE(name_of_kind(kind));
      expect_lossless(kind);
      const bool has_predictor =
          compression != COMPRESSION_PACKBITS && compression != COMPRESSION_LERC;
      if (!has_predictor) continue;
      kind.predictor = PREDICTOR_HORIZONTAL;
      kind.bits = 16;
      expect_lossless(kind);
      kind.predictor = PREDICTOR_FLOATINGPOINT;
      kind.bits = 32;
      kind.format = SAMPLEFORMAT_IEEEFP;
      if (compression != COMPRESSION_LZMA) expect_lossless(kind);
    }
}

/// JPEG in RGB and in YCbCr, WebP: what is decoded is near what was written, and any box is what
/// the whole has there. Of PixarLog only the latter: libtiff does not write 8 bits so that they
/// come back, nor tiles.
TEST_F(TiffTest, LossyCompressions) {
  struct Case {
    int compression, photometric, samples, bits, tolerance;
  };
  for (const Case& c : {Case{COMPRESSION_JPEG, PHOTOMETRIC_MINISBLACK, 1, 8, 30},
                        Case{COMPRESSION_JPEG, PHOTOMETRIC_RGB, 3, 8, 30},
                        Case{COMPRESSION_JPEG, PHOTOMETRIC_YCBCR, 3, 8, 90},
                        Case{COMPRESSION_WEBP, PHOTOMETRIC_RGB, 3, 8, 90},
                        Case{COMPRESSION_PIXARLOG, PHOTOMETRIC_MINISBLACK, 1, 8, 255},
                        Case{COMPRESSION_PIXARLOG, PHOTOMETRIC_RGB, 3, 8, 255}})
    for (const int tile : {0, 32}) {
      if (!TIFFIsCODECConfigured(static_cast<uint16_t>(c.compression))) continue;
      if (c.compression == COMPRESSION_PIXARLOG && tile > 0) continue;
      TiffKind kind{.samples = c.samples,
                    .bits = c.bits,
                    .compression = c.compression,
                    .photometric = c.photometric,
                    .tile_width = tile,
                    .tile_height = tile,
                    .rows_per_strip = 16};
      kind.tags = [&](TIFF* file, int) {
        if (c.photometric == PHOTOMETRIC_YCBCR)
          TIFFSetField(file, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
        if (c.compression == COMPRESSION_PIXARLOG)
          TIFFSetField(file, TIFFTAG_PIXARLOGDATAFMT, PIXARLOGDATAFMT_8BIT);
      };
      SCOPED_TRACE(name_of_kind(kind));
      ASSERT_TRUE(write_tiff(path_, kind, slope(kind)));
      const auto file = open();
      const std::string whole = read_whole(*file), written = all_rows(kind, slope(kind), 1);
      ASSERT_EQ(whole.size(), written.size());
      int64_t far = 0;
      for (size_t i = 0; i < whole.size(); ++i)
        far += std::abs(static_cast<uint8_t>(whole[i]) - static_cast<uint8_t>(written[i])) >
               c.tolerance;
      EXPECT_LT(far, std::ssize(whole) / 20);  // where the slope wraps
      expect_boxes_of(*file, whole);
    }
}

TEST_F(TiffTest, LogLuvIsReal) {
  TiffKind kind{.samples = 3,
                .bits = 32,
                .format = SAMPLEFORMAT_IEEEFP,
                .compression = COMPRESSION_SGILOG,
                .photometric = PHOTOMETRIC_LOGLUV};
  kind.tags = [](TIFF* file, int) {
    TIFFSetField(file, TIFFTAG_SGILOGDATAFMT, SGILOGDATAFMT_FLOAT);
  };
  ASSERT_TRUE(write_tiff(path_, kind, [&](int, int, int64_t row) {
    std::vector<float> numbers(static_cast<size_t>(kind.width * 3), 1.0f + static_cast<float>(row));
    return std::string(reinterpret_cast<const char*>(numbers.data()), numbers.size() * 4);
  }));
  const auto file = open();
  EXPECT_EQ(file->type(), PixelType::kFloat32);
  const std::string whole = read_whole(*file);
  float last = 0;
  std::memcpy(&last, whole.data() + whole.size() - 4, 4);
  EXPECT_NEAR(last, static_cast<float>(kind.height), 1);
  expect_boxes_of(*file, whole);
}

/// Fax codecs, few bits, odd bits: a number of the file is an element, unscaled.
TEST_F(TiffTest, FewBitsAreUnpacked) {
  for (const int bits : {1, 2, 4, 12})
    for (const int compression : {COMPRESSION_NONE, COMPRESSION_LZW, COMPRESSION_CCITTFAX3,
                                  COMPRESSION_CCITTFAX4, COMPRESSION_CCITTRLE, COMPRESSION_JBIG})
      for (const int block : {0, 1}) {
        if (bits != 1 && compression != COMPRESSION_NONE && compression != COMPRESSION_LZW)
          continue;
        if (!TIFFIsCODECConfigured(static_cast<uint16_t>(compression))) continue;
        const bool jbig = compression == COMPRESSION_JBIG;
        if (jbig && block == 1) continue;
        TiffKind kind{.bits = bits,
                      .compression = compression,
                      .tile_width = block * 16,
                      .tile_height = block * 16,
                      .rows_per_strip = jbig ? 1000 : 7};
        SCOPED_TRACE(name_of_kind(kind));
        ASSERT_TRUE(write_tiff(path_, kind, noise(kind)));
        const auto file = open();
        EXPECT_EQ(file->type(), bits > 8 ? PixelType::kUint16 : PixelType::kUint8);
        const std::string whole = read_whole(*file);
        const int64_t element = bytes_of(file->type());
        for (int64_t y = 0; y < kind.height; ++y) {
          const std::string row = noise(kind)(0, 0, y);
          for (int64_t x = 0; x < kind.width; ++x) {
            int expected = 0;
            for (int64_t bit = x * bits; bit < (x + 1) * bits; ++bit)
              expected = expected * 2 + (row[static_cast<size_t>(bit / 8)] >> (7 - bit % 8) & 1);
            uint16_t got = 0;
            std::memcpy(&got, whole.data() + (y * kind.width + x) * element,
                        static_cast<size_t>(element));
            ASSERT_EQ(got, expected) << y << ", " << x;
          }
        }
        expect_boxes_of(*file, whole);
      }
}

/// libtiff's decoder of fax goes on over damaged rows with what it holds, and it held rows of the
/// strip that was read before: a damaged strip had other pixels by itself than within its image.
TEST_F(TiffTest, ADamagedFaxIsTheSameByAnyBox) {
  for (const int compression :
       {COMPRESSION_CCITTRLE, COMPRESSION_CCITTFAX3, COMPRESSION_CCITTFAX4}) {
    const TiffKind kind{.bits = 1, .compression = compression, .rows_per_strip = 7};
    SCOPED_TRACE(name_of_kind(kind));
    ASSERT_TRUE(write_tiff(path_, kind, noise(kind)));
    const std::string valid = read_bytes(path_);
    const auto [begin, end] = bytes_of_strips();
    int read = 0;
    for (uint64_t seed = 0; seed < 100; ++seed) {
      std::mt19937_64 random(seed);
      std::string bytes = valid;
      for (int i = 0; i < 8; ++i)
        bytes[begin + random() % (end - begin)] = static_cast<char>(random() % 256);
      write_bytes(path_, bytes);
      const std::string whole = pixels_of({{0, kind.height}, {0, kind.width}});
      if (whole.empty()) continue;
      ++read;
      for (int64_t y = 0; y < kind.height; y += kind.rows_per_strip) {
        const Range rows{y, std::min(y + kind.rows_per_strip, kind.height)};
        ASSERT_EQ(pixels_of({rows, {0, kind.width}}) ==
                      whole.substr(y * kind.width, rows.size() * kind.width),
                  true)
            << "seed " << seed << ", row " << y;
      }
    }
    EXPECT_GT(read, 0);
  }
}

TEST_F(TiffTest, YCbCrWithoutJpegIsRgb) {
  TiffKind kind{.width = 64,
                .height = 48,
                .samples = 3,
                .compression = COMPRESSION_LZW,
                .photometric = PHOTOMETRIC_YCBCR,
                .rows_per_strip = 16};
  kind.tags = [](TIFF* file, int) { TIFFSetField(file, TIFFTAG_YCBCRSUBSAMPLING, 1, 1); };
  ASSERT_TRUE(write_tiff(path_, kind, [&](int, int, int64_t row) {
    std::string pixels;
    for (int64_t x = 0; x < kind.width; ++x) {
      pixels += static_cast<char>(row * 4);
      pixels += "\x80\x80";  // no colour
    }
    return pixels;
  }));
  const auto file = open();
  const std::string whole = read_whole(*file);
  EXPECT_EQ(file->info().axes, "YXC");
  EXPECT_NEAR(static_cast<uint8_t>(whole[3 * 64 * 40]), 160, 2);
  EXPECT_NEAR(static_cast<uint8_t>(whole[3 * 64 * 3 + 1]), 12, 2);
  expect_boxes_of(*file, whole);
}

TEST_F(TiffTest, APaletteIsReadAsItsIndices) {
  TiffKind kind{.photometric = PHOTOMETRIC_PALETTE};
  std::vector<uint16_t> map(256, 700);
  kind.tags = [&](TIFF* file, int) {
    TIFFSetField(file, TIFFTAG_COLORMAP, map.data(), map.data(), map.data());
  };
  expect_lossless(kind);
}

TEST_F(TiffTest, PagesAreAnAxis) {
  expect_lossless({.mode = "w8", .samples = 1, .compression = COMPRESSION_LZW}, 5);
  EXPECT_EQ(open()->info().axes, "PYX");
  EXPECT_EQ(open()->shape(), (Shape{5, 47, 61}));
  expect_lossless({.samples = 3, .planar = true, .tile_width = 16, .tile_height = 16}, 3);
  EXPECT_EQ(open()->info().axes, "PCYX");
  expect_lossless({.samples = 4}, 2);
  EXPECT_EQ(open()->info().axes, "PYXC");
}

TEST_F(TiffTest, PagesThatDifferAreRefused) {
  TIFF* const file = TIFFOpen(path_.c_str(), "w");
  TiffKind kind;
  write_tiff_page(file, kind, 0, noise(kind));
  TIFFWriteDirectory(file);
  kind.width = 30;
  write_tiff_page(file, kind, 1, noise(kind));
  TIFFClose(file);
  expect_refusal([&] { open(); }, "page 1 is 47 x 30 x 1 of uint8, page 0 is 47 x 61 x 1 of uint8");
}

TEST_F(TiffTest, ImageJAndOmeSayWhatPagesAre) {
  TiffKind kind;
  const auto describe = [&](const std::string& text) {
    kind.tags = [text](TIFF* file, int page) {
      TIFFSetField(file, TIFFTAG_XRESOLUTION, 4.0f);
      TIFFSetField(file, TIFFTAG_YRESOLUTION, 2.0f);
      TIFFSetField(file, TIFFTAG_RESOLUTIONUNIT, RESUNIT_NONE);
      if (page == 0) TIFFSetField(file, TIFFTAG_IMAGEDESCRIPTION, text.c_str());
    };
    expect_lossless(kind, 6);
    return open()->info();
  };
  ArrayInfo info =
      describe("ImageJ=1.53t\nimages=6\nchannels=2\nslices=3\nunit=micron\nspacing=5.0\n");
  EXPECT_EQ(info.axes, "ZCYX");
  EXPECT_EQ(info.shape, (Shape{3, 2, 47, 61}));
  EXPECT_EQ(info.frame.spacing, (std::vector<double>{5e-3, 0.5e-3, 0.25e-3}));
  info = describe("ImageJ=1.53t\nimages=6\nchannels=4\n");  // does not fit the pages
  EXPECT_EQ(info.axes, "PYX");
  info = describe(
      "<?xml?><OME><Image><Pixels DimensionOrder=\"XYZCT\" SizeZ=\"2\" SizeC=\"3\" SizeT=\"1\" "
      "PhysicalSizeX=\"0.5\" PhysicalSizeY=\"0.25\" PhysicalSizeZ=\"2\" "
      "PhysicalSizeZUnit=\"mm\"></Pixels></Image></OME>");
  EXPECT_EQ(info.axes, "CZYX");
  EXPECT_EQ(info.shape, (Shape{3, 2, 47, 61}));
  EXPECT_EQ(info.frame.spacing, (std::vector<double>{2, 0.25e-3, 0.5e-3}));
}

TEST_F(TiffTest, ResolutionTagsAreTheSpacing) {
  TiffKind kind;
  kind.tags = [](TIFF* file, int) {
    TIFFSetField(file, TIFFTAG_XRESOLUTION, 40000.0f);
    TIFFSetField(file, TIFFTAG_YRESOLUTION, 20000.0f);
    TIFFSetField(file, TIFFTAG_RESOLUTIONUNIT, RESUNIT_CENTIMETER);
  };
  expect_lossless(kind);
  EXPECT_EQ(open()->info().frame.spacing, (std::vector<double>{0.0005, 0.00025}));
  kind.tags = [](TIFF*, int) {};
  expect_lossless(kind);
  EXPECT_TRUE(open()->info().frame.spacing.empty());
}

/// Levels as directories of their own and as children of the first, with a transparency mask
/// between them.
TEST_F(TiffTest, PyramidsAreLevelsAndNotPages) {
  for (const bool as_children : {false, true}) {
    SCOPED_TRACE(as_children);
    TIFF* const file = TIFFOpen(path_.c_str(), "w8");
    TiffKind kind{.width = 64, .height = 64, .tile_width = 16, .tile_height = 16};
    for (int level = 0; level < 3; ++level) {
      kind.width = kind.height = 64 >> level;
      kind.tags = [&](TIFF* tiff, int) {
        TIFFSetField(tiff, TIFFTAG_XRESOLUTION, 10000.0f);
        TIFFSetField(tiff, TIFFTAG_YRESOLUTION, 10000.0f);
        TIFFSetField(tiff, TIFFTAG_RESOLUTIONUNIT, RESUNIT_CENTIMETER);
        if (level > 0) TIFFSetField(tiff, TIFFTAG_SUBFILETYPE, FILETYPE_REDUCEDIMAGE);
        if (level == 0 && as_children) {
          const uint64_t places[2] = {0, 0};  // libtiff takes the next two directories for them
          TIFFSetField(tiff, TIFFTAG_SUBIFD, 2, places);
        }
      };
      ASSERT_TRUE(write_tiff_page(file, kind, level, noise(kind)));
      TIFFWriteDirectory(file);
    }
    kind.tags = [](TIFF* tiff, int) { TIFFSetField(tiff, TIFFTAG_SUBFILETYPE, FILETYPE_MASK); };
    ASSERT_TRUE(write_tiff_page(file, kind, 9, noise(kind)));
    TIFFClose(file);
    EXPECT_EQ(open()->shape(), (Shape{64, 64}));
    for (int level = 0; level < 3; ++level) {
      const auto array = open({.level = level});
      EXPECT_EQ(array->shape(), (Shape{64 >> level, 64 >> level}));
      EXPECT_DOUBLE_EQ(array->info().frame.spacing[0], 0.001 * (1 << level));
      TiffKind own = kind;
      own.width = own.height = 64 >> level;
      std::string expected;
      for (int64_t row = 0; row < own.height; ++row) expected += noise(own)(level, 0, row);
      EXPECT_EQ(read_whole(*array) == expected, true);
      expect_boxes_of(*array, expected);
    }
    EXPECT_EQ(open({.microns_per_pixel = 1.9})->shape(), (Shape{32, 32}));
    EXPECT_EQ(open({.microns_per_pixel = 100})->shape(), (Shape{16, 16}));
    EXPECT_EQ(open({.microns_per_pixel = 0.1})->shape(), (Shape{64, 64}));
    expect_refusal([&] { open({.level = 3}); }, "level 3 of 3 levels; legal: 0 to 2");
    expect_refusal([&] { open({.level = -1}); }, "level -1");
  }
}

/// A strip of more than 64 MiB is decoded row by row, forwards and backwards.
TEST_F(TiffTest, AHugeStripIsReadByRows) {
  TiffKind kind{
      .width = 40000, .height = 1700, .compression = COMPRESSION_PACKBITS, .rows_per_strip = 1700};
  const TiffRow row_of = [](int, int, int64_t row) {
    return std::string(40000, static_cast<char>(row * 7));
  };
  ASSERT_TRUE(write_tiff(path_, kind, row_of));
  const auto file = open();
  EXPECT_EQ(file->info().block, (Shape{1, 40000}));
  for (const int64_t row : {1000, 1003, 1004, 17, 1699, 0})
    EXPECT_EQ(read_box(*file, {{row, row + 1}, {77, 80}}),
              std::string(3, static_cast<char>(row * 7)));
}

TEST_F(TiffTest, BlocksThatAreLeftOutAreZeros) {
  TIFF* const file = TIFFOpen(path_.c_str(), "w8");
  TiffKind kind{.width = 64, .height = 64, .tile_width = 32, .tile_height = 32};
  kind.height = 32;
  ASSERT_TRUE(write_tiff_page(file, kind, 0, noise(kind)));
  TIFFSetField(file, TIFFTAG_IMAGELENGTH, 64);
  TIFFClose(file);
  const auto array = open();
  ASSERT_EQ(array->shape(), (Shape{64, 64}));
  EXPECT_EQ(read_box(*array, {{32, 64}, {0, 64}}), std::string(32 * 64, '\0'));
  EXPECT_NE(read_box(*array, {{0, 32}, {0, 64}}), std::string(32 * 64, '\0'));
}

/// GDAL's convention: what is left out is the no-data value, in the type of the pixels.
TEST_F(TiffTest, BlocksThatAreLeftOutAreTheNoDataValue) {
  const auto read_left_out = [&](TiffKind kind, const char* no_data) {
    static const TIFFFieldInfo field = {42113,        -1, -1, TIFF_ASCII,
                                        FIELD_CUSTOM, 1,  0,  const_cast<char*>("GDAL_NODATA")};
    kind.tags = [&](TIFF* file, int) {
      TIFFMergeFieldInfo(file, &field, 1);
      TIFFSetField(file, 42113, no_data);
    };
    const int64_t height = kind.height;
    TIFF* const file = TIFFOpen(path_.c_str(), "w8");
    kind.height = kind.tile_height > 0 ? kind.tile_height : kind.rows_per_strip;
    EXPECT_TRUE(write_tiff_page(file, kind, 0, noise(kind)));
    TIFFSetField(file, TIFFTAG_IMAGELENGTH, static_cast<uint32_t>(height));
    TIFFClose(file);
    const auto array = open();
    EXPECT_EQ(array->shape()[0], height);
    Box box = Box::whole(array->shape());
    box[0] = {height - 1, height};
    box[1] = {1, 3};
    return read_box(*array, box);
  };
  TiffKind tiled{.width = 64, .height = 64, .tile_width = 32, .tile_height = 32};
  EXPECT_EQ(read_left_out(tiled, "7"), "\7\7");
  EXPECT_EQ(read_left_out(tiled, "-9999"), std::string(2, '\0'));
  EXPECT_EQ(read_left_out(tiled, "nan"), std::string(2, '\0'));
  tiled.samples = 3;
  tiled.compression = COMPRESSION_ADOBE_DEFLATE;
  EXPECT_EQ(read_left_out(tiled, "255"), std::string(6, '\xff'));
  tiled.samples = 1;
  tiled.bits = 4;
  EXPECT_EQ(read_left_out(tiled, "9"), "\x9\x9");
  tiled.bits = 16;
  tiled.format = SAMPLEFORMAT_INT;
  EXPECT_EQ(read_left_out(tiled, "-2"), "\xfe\xff\xfe\xff");
  tiled.format = SAMPLEFORMAT_IEEEFP;
  EXPECT_EQ(read_left_out(tiled, "-1.5"), std::string("\0\xbe\0\xbe", 4));
  tiled.bits = 64;
  const double number = -3.4e38;
  const std::string bytes(reinterpret_cast<const char*>(&number), sizeof(number));
  EXPECT_EQ(read_left_out(tiled, "-3.4e38"), bytes + bytes);
  const TiffKind strips{.height = 40, .rows_per_strip = 8};  // rows are read where they lie
  EXPECT_EQ(read_left_out(strips, "5"), "\5\5");
}

/// Four billion pixels, of which the file holds two tiles.
TEST_F(TiffTest, AFileOfFourGigapixels) {
  TIFF* const large = TIFFOpen((folder_ / "large.tif").c_str(), "w8");
  TIFFSetField(large, TIFFTAG_IMAGEWIDTH, 65536);
  TIFFSetField(large, TIFFTAG_IMAGELENGTH, 65536);
  TIFFSetField(large, TIFFTAG_BITSPERSAMPLE, 8);
  TIFFSetField(large, TIFFTAG_SAMPLESPERPIXEL, 1);
  TIFFSetField(large, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
  TIFFSetField(large, TIFFTAG_COMPRESSION, COMPRESSION_ADOBE_DEFLATE);
  TIFFSetField(large, TIFFTAG_TILEWIDTH, 256);
  TIFFSetField(large, TIFFTAG_TILELENGTH, 256);
  std::string tile(65536, '\7');
  TIFFWriteTile(large, tile.data(), 65280, 65280, 0, 0);
  TIFFWriteTile(large, tile.data(), 256, 0, 0, 0);
  TIFFClose(large);
  const auto array = open_array(folder_ / "large.tif");
  EXPECT_EQ(array->shape(), (Shape{65536, 65536}));
  EXPECT_EQ(read_box(*array, {{65278, 65282}, {65279, 65282}}),
            std::string(7, '\0') + std::string("\7\7\0\7\7", 5));
  EXPECT_EQ(read_box(*array, {{255, 257}, {300, 301}}), std::string("\7\0", 2));
}

TEST_F(TiffTest, WhatIsNotATiffIsRefused) {
  write_bytes(path_, "II, but no more");
  expect_refusal([&] { open(); }, "[tiff] " + path_);
  write_bytes(path_, "");
  expect_refusal([&] { open(); }, "is not a TIFF file");
  expect_refusal([&] { open_array(folder_ / "none.tif"); }, "No such file");
  TiffKind kind{.compression = COMPRESSION_LZW};
  ASSERT_TRUE(write_tiff(path_, kind, noise(kind)));
  const auto file = open();
  write_bytes(path_, read_bytes(path_).substr(0, 900));  // shrinks while it is open
  expect_refusal([&] { read_whole(*file); }, path_);
}

TEST_F(TiffTest, AStripBeyondTheEndSaysSo) {
  TiffKind kind{.rows_per_strip = 1000};
  ASSERT_TRUE(write_tiff(path_, kind, noise(kind)));
  std::string bytes = read_bytes(path_);
  const size_t entry = bytes.find(std::string("\x11\x01\x04\x00\x01\x00\x00\x00", 8));
  ASSERT_NE(entry, std::string::npos);
  bytes[entry + 10] = 1;  // the strip begins at byte 65536 more
  write_bytes(path_, bytes);
  expect_refusal([&] { read_whole(*open()); }, "the file at");
}

}  // namespace
}  // namespace tessera::tiff_test
