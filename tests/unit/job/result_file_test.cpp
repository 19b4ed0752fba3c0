#include "tessera/job/result_file.h"

#include <gtest/gtest.h>

namespace tessera::result_file_test {
namespace {

ArrayInfo array(const std::string& axes, PixelType type) {
  return {.shape = Shape(axes.size(), 8), .axes = axes, .type = type};
}

TEST(ResultFile, HasTheFormatOfItsImage) {
  const ArrayInfo map = array("YX", PixelType::kUint8), volume = array("ZYX", PixelType::kUint8);
  const ArrayInfo shares = array("CYX", PixelType::kFloat32);
  for (const char* own : {".npy", ".tif", ".tiff", ".btf", ".nii", ".nii.gz"})
    for (const ArrayInfo& result : {map, volume, shares})
      EXPECT_EQ(result_ending("scans/a" + std::string(own), result), own);
  EXPECT_EQ(result_ending("A.TIF", map), ".tif");
  EXPECT_EQ(result_ending("a.png", map), ".png");
  EXPECT_EQ(result_ending("a.jpeg", map), ".png");
  EXPECT_EQ(result_ending("a.svs", map), ".tif");
  EXPECT_EQ(result_ending("a.jp2", map), ".tif");
  EXPECT_EQ(result_ending("a.dcm", volume), ".nii.gz");
  EXPECT_EQ(result_ending("a.h5", volume), ".npy");
  EXPECT_EQ(result_ending("a.raw", volume), ".npy");
  EXPECT_EQ(result_ending("", map), ".npy");
}

TEST(ResultFile, HasAFormatThatHoldsIt) {
  // A PNG has neither real numbers nor planes nor large numbers of classes.
  EXPECT_EQ(result_ending("a.png", array("CYX", PixelType::kFloat32)), ".tif");
  EXPECT_EQ(result_ending("a.png", array("YX", PixelType::kInt64)), ".tif");
  // One class for an image is not an image.
  EXPECT_EQ(result_ending("a.png", array("", PixelType::kUint8)), ".npy");
  EXPECT_EQ(result_ending("a.tif", array("X", PixelType::kUint8)), ".npy");
}

}  // namespace
}  // namespace tessera::result_file_test
