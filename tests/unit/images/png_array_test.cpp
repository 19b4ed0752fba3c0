// PNG files of every kind: numbers as they are stored, by boxes.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tessera/images/open_array.h"
#include "tests/unit/images/array_boxes.h"
#include "tests/unit/images/png_files.h"
#include "tests/unit/refusal.h"
#include "tests/unit/scratch_folder.h"

namespace tessera::png_array_test {
namespace {

int samples_of(int colour) {
  return colour == PNG_COLOR_TYPE_RGB          ? 3
         : colour == PNG_COLOR_TYPE_RGB_ALPHA  ? 4
         : colour == PNG_COLOR_TYPE_GRAY_ALPHA ? 2
                                               : 1;
}

/// Random packed rows, and the elements that a reader gives for them.
struct Noise {
  explicit Noise(const PngKind& kind) {
    std::mt19937_64 random(5);
    const int64_t count = kind.width * samples_of(kind.colour);
    for (int64_t y = 0; y < kind.height; ++y) {
      std::string row(static_cast<size_t>((count * kind.bits + 7) / 8), '\0');
      for (char& byte : row) byte = static_cast<char>(random() >> 20);
      for (int64_t i = 0; i < count; ++i) {
        if (kind.bits == 16) {  // the machine's order
          elements += row[static_cast<size_t>(2 * i + 1)];
          elements += row[static_cast<size_t>(2 * i)];
          continue;
        }
        const auto byte = static_cast<uint8_t>(row[static_cast<size_t>(i * kind.bits / 8)]);
        elements +=
            static_cast<char>(byte >> (8 - kind.bits - i * kind.bits % 8) & ((1 << kind.bits) - 1));
      }
      rows.push_back(row);
    }
  }
  std::vector<std::string> rows;
  std::string elements;
};

class PngArrayTest : public ::testing::Test {
 protected:
  const ScratchFolder folder_{ScratchFolder::Medium::kMemory};
  const std::string path_ = folder_ / "a.png";
};

TEST_F(PngArrayTest, EveryKindIsReadAsItIsStored) {
  struct Case {
    int colour;
    std::vector<int> bits;
  };
  for (const Case& c :
       {Case{PNG_COLOR_TYPE_GRAY, {1, 2, 4, 8, 16}}, Case{PNG_COLOR_TYPE_PALETTE, {1, 2, 4, 8}},
        Case{PNG_COLOR_TYPE_GRAY_ALPHA, {8, 16}}, Case{PNG_COLOR_TYPE_RGB, {8, 16}},
        Case{PNG_COLOR_TYPE_RGB_ALPHA, {8, 16}}})
    for (const int bits : c.bits)
      for (const bool interlaced : {false, true}) {
        SCOPED_TRACE(fmt::format("colour {}, {} bits, interlaced {}", c.colour, bits, interlaced));
        const PngKind kind{.bits = bits, .colour = c.colour, .interlaced = interlaced};
        const Noise noise(kind);
        write_bytes(path_, png_bytes(kind, noise.rows));
        const auto file = open_array(path_);
        const int samples = samples_of(c.colour);
        EXPECT_EQ(file->info().axes, samples == 1 ? "YX" : "YXC");
        EXPECT_EQ(file->type(), bits == 16 ? PixelType::kUint16 : PixelType::kUint8);
        EXPECT_EQ(read_whole(*file) == noise.elements, true);
        expect_boxes_of(*file, noise.elements);
      }
}

TEST_F(PngArrayTest, StripsFromTheTopAndOutOfOrder) {
  const PngKind kind{.height = 200, .colour = PNG_COLOR_TYPE_RGB};
  const Noise noise(kind);
  write_bytes(path_, png_bytes(kind, noise.rows));
  const auto file = open_array(path_);
  const size_t row = 37 * 3;
  for (const int64_t y : {0, 10, 20, 190, 20, 0, 30, 199})
    EXPECT_EQ(read_box(*file, {{y, y + 1}, {0, 37}, {0, 3}}) ==
                  noise.elements.substr(static_cast<size_t>(y) * row, row),
              true)
        << y;
}

TEST_F(PngArrayTest, PixelsPerMetreAreTheSpacing) {
  const PngKind kind{.pixels_per_metre = 4000};
  write_bytes(path_, png_bytes(kind, Noise(kind).rows));
  EXPECT_EQ(open_array(path_)->info().frame.spacing, (std::vector<double>{0.125, 0.25}));
}

TEST_F(PngArrayTest, DamageIsRefusedByName) {
  const PngKind kind;
  const std::string bytes = png_bytes(kind, Noise(kind).rows);
  write_bytes(path_, bytes.substr(0, bytes.size() / 2));
  expect_refusal([&] { read_whole(*open_array(path_)); }, "a.png");
  write_bytes(path_, "no PNG at all");
  expect_refusal([&] { open_array(path_); }, "is not a PNG file");
  write_bytes(path_, bytes);
  const auto file = open_array(path_);
  write_bytes(path_, bytes.substr(0, 60));
  expect_refusal([&] { read_whole(*file); }, "shorter than it was");
}

}  // namespace
}  // namespace tessera::png_array_test
