// A tiled pyramid that OpenSlide reads as a slide: levels, boxes, the size of pixels.

#include <gtest/gtest.h>

#include "tessera/images/formats.h"
#include "tests/unit/images/array_boxes.h"
#include "tests/unit/images/tiff_files.h"
#include "tests/unit/refusal.h"
#include "tests/unit/scratch_folder.h"

namespace tessera::slide_array_test {
namespace {

TiffRow colours(const TiffKind& kind) {
  return [kind](int page, int, int64_t row) {
    std::string result;
    for (int64_t x = 0; x < kind.width; ++x)
      for (int c = 0; c < 3; ++c)
        result += static_cast<char>((x * 5 + row * 3 + c * 50 + page * 17) % 251);
    return result;
  };
}

class SlideArrayTest : public ::testing::Test {
 protected:
  SlideArrayTest() {
    TIFF* const file = TIFFOpen(path_.c_str(), "w");
    for (int level = 0; level < 3; ++level) {
      const TiffKind kind = kind_of(level);
      write_tiff_page(file, kind, level, colours(kind));
      TIFFWriteDirectory(file);
    }
    TIFFClose(file);
  }
  static TiffKind kind_of(int level) {
    TiffKind kind{.width = 603 >> level,
                  .height = 411 >> level,
                  .samples = 3,
                  .compression = COMPRESSION_ADOBE_DEFLATE,
                  .photometric = PHOTOMETRIC_RGB,
                  .tile_width = 64,
                  .tile_height = 64};
    kind.tags = [level](TIFF* tiff, int) {
      if (level > 0) TIFFSetField(tiff, TIFFTAG_SUBFILETYPE, FILETYPE_REDUCEDIMAGE);
    };
    return kind;
  }
  std::unique_ptr<ArrayFile> open(const ArrayOptions& options = {}) {
    return open_slide(path_, options);
  }
  const ScratchFolder folder_{ScratchFolder::Medium::kMemory};
  const std::string path_ = folder_ / "slide.svs";
};

TEST_F(SlideArrayTest, LevelsByBoxes) {
  for (int level = 0; level < 3; ++level) {
    SCOPED_TRACE(level);
    const auto slide = open({.level = level});
    const TiffKind kind = kind_of(level);
    EXPECT_EQ(slide->info().axes, "YXC");
    ASSERT_EQ(slide->shape(), (Shape{kind.height, kind.width, 3}));
    const std::string whole = read_whole(*slide);
    if (level == 0) {
      std::string written;
      for (int64_t row = 0; row < kind.height; ++row) written += colours(kind)(0, 0, row);
      EXPECT_EQ(whole == written, true);
    }
    expect_boxes_of(*slide, whole);
  }
}

TEST_F(SlideArrayTest, RefusalsNameTheFile) {
  expect_refusal([&] { open({.level = 3}); }, "level 3 of 3 levels; legal: 0 to 2");
  expect_refusal([&] { open({.microns_per_pixel = 0.5}); }, "how large its pixels are");
  write_bytes(folder_ / "text.svs", "no slide");
  expect_refusal([&] { open_slide(folder_ / "text.svs", {}); }, "text.svs: is not a slide");
  expect_refusal([&] { open_slide(folder_ / "none.svs", {}); }, "No such file");
  expect_refusal([&] { open_slide(folder_.path(), {}); }, "a folder");
}

}  // namespace
}  // namespace tessera::slide_array_test
