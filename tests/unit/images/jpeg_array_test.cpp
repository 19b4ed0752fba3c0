// JPEG files: grey and colour, baseline and progressive; boxes are what the whole has there.

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/images/open_array.h"
#include "tests/unit/images/array_boxes.h"
#include "tests/unit/images/jpeg_files.h"
#include "tests/unit/refusal.h"
#include "tests/unit/scratch_folder.h"

namespace tessera::jpeg_array_test {
namespace {

class JpegArrayTest : public ::testing::Test {
 protected:
  const ScratchFolder folder_{ScratchFolder::Medium::kMemory};
  const std::string path_ = folder_ / "a.jpg";
};

TEST_F(JpegArrayTest, GreyAndColourByBoxes) {
  for (const int components : {1, 3})
    for (const bool progressive : {false, true}) {
      SCOPED_TRACE(fmt::format("{} components, progressive {}", components, progressive));
      write_bytes(path_, jpeg_bytes({.components = components, .progressive = progressive}));
      const auto file = open_array(path_);
      EXPECT_EQ(file->info().axes, components == 1 ? "YX" : "YXC");
      EXPECT_EQ(file->type(), PixelType::kUint8);
      const std::string whole = read_whole(*file);
      for (int64_t y = 0; y < 45; ++y)
        for (int64_t x = 0; x < 70; ++x)
          for (int c = 0; c < components; ++c)
            ASSERT_NEAR(
                static_cast<uint8_t>(whole[static_cast<size_t>((y * 70 + x) * components + c)]),
                jpeg_sample(y, x, c), 12)
                << y << ", " << x;
      expect_boxes_of(*file, whole);
    }
}

TEST_F(JpegArrayTest, CmykIsRefused) {
  write_bytes(path_, jpeg_bytes({.components = 4}));
  expect_refusal([&] { open_array(path_); }, "save it as RGB");
}

TEST_F(JpegArrayTest, DamageIsRefusedByName) {
  const std::string bytes = jpeg_bytes({.components = 3});
  write_bytes(path_, bytes.substr(0, bytes.size() - 200));
  expect_refusal([&] { read_whole(*open_array(path_)); }, "a.jpg");
  write_bytes(path_, "no JPEG at all");
  expect_refusal([&] { open_array(path_); }, "is not a JPEG file");
  write_bytes(path_, "");
  expect_refusal([&] { open_array(path_); }, "is not a JPEG file");
}

}  // namespace
}  // namespace tessera::jpeg_array_test
