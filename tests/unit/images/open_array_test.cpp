// Files by the endings of their names, and the options that each format has.

#include "tessera/images/open_array.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/data/npy_bytes.h"

namespace tessera::open_array_test {
namespace {

TEST(OpenArray, RefusesOptionsThatTheFormatDoesNotHave) {
  const ScratchFolder folder{ScratchFolder::Medium::kMemory};
  const std::string path = folder / "a.npy";
  write_bytes(path, npy_of<uint8_t>("|u1", "(1,)", {7}));
  const auto refused = [&](const ArrayOptions& options, const std::string& words) {
    expect_refusal([&] { open_array(path, options); }, "a.npy: " + words);
  };
  refused({.level = 3}, "level= is for TIFF and slides; leave it out");
  refused({.microns_per_pixel = 0.5}, "mpp= is for TIFF and slides");
  refused({.dataset = "x"}, "dataset= is for HDF5");
  refused({.raw_shape = {3, 3}}, "shape= is for raw files");
  refused({.raw_type = PixelType::kUint8}, "type= is for raw files");
  EXPECT_EQ(open_array(path)->shape(), (Shape{1}));
  write_bytes(folder / "a.raw", "abc");
  EXPECT_EQ(
      open_array(folder / "a.raw", {.raw_shape = {3}, .raw_type = PixelType::kUint8})->shape(),
      (Shape{3}));
}

/// One that lies beside images must not stop the set.
TEST(OpenArray, VirtualRastersAreNotImages) {
  EXPECT_FALSE(is_image_path("a.vrt"));
  EXPECT_TRUE(is_image_path("A.TIF"));
  EXPECT_EQ(std::ranges::count(image_endings(), ".vrt"), 0);
  expect_refusal([] { open_array("a.VRT"); }, "only names other files");
  expect_refusal([] { open_array("a.txt"); }, "the ending is not one of an image");
}

TEST(OpenArray, StemsAreWithoutTheWholeEnding) {
  EXPECT_EQ(image_stem("b/a.b.NII.GZ"), "a.b");
  EXPECT_EQ(image_stem("a.txt"), "a.txt");
}

}  // namespace
}  // namespace tessera::open_array_test
