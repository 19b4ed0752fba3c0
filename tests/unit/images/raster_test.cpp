// Rasters, written by GDAL itself.

#include <cpl_conv.h>
#include <gdal.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <filesystem>

#include "tessera/images/open_array.h"
#include "tests/unit/images/array_boxes.h"
#include "tests/unit/refusal.h"
#include "tests/unit/scratch_folder.h"

namespace tessera::raster_test {
namespace {

constexpr int kBands = 3, kHeight = 70, kWidth = 90;
constexpr std::array<double, 6> kTransform{440720, 60, 0, 3751320, 0, -60};

/// Counted up, band by band.
template <class T>
std::vector<T> counted() {
  std::vector<T> numbers(kBands * kHeight * kWidth);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<T>(i);
  return numbers;
}

template <class T>
void write_raster(const std::string& path, const char* driver, GDALDataType type) {
  GDALAllRegister();
  const GDALDatasetH raster =
      GDALCreate(GDALGetDriverByName(driver), path.c_str(), kWidth, kHeight, kBands, type, nullptr);
  ASSERT_NE(raster, nullptr);
  std::vector<T> numbers = counted<T>();
  EXPECT_EQ(GDALDatasetRasterIO(raster, GF_Write, 0, 0, kWidth, kHeight, numbers.data(), kWidth,
                                kHeight, type, kBands, nullptr, 0, 0, 0),
            CE_None);
  std::array<double, 6> transform = kTransform;
  GDALSetGeoTransform(raster, transform.data());
  for (int band = 1; band <= kBands; ++band)
    GDALSetRasterNoDataValue(GDALGetRasterBand(raster, band), 7);
  GDALClose(raster);
}

class Raster : public ::testing::Test {
 protected:
  template <class T>
  void expect_type(const char* driver, GDALDataType gdal_type, PixelType type) {
    write_raster<T>(folder_ / "a.img", driver, gdal_type);
    const auto file = open_array(folder_ / "a.img");
    EXPECT_EQ(file->info().axes, "CYX");
    EXPECT_EQ(file->shape(), (Shape{kBands, kHeight, kWidth}));
    EXPECT_EQ(file->type(), type);
    EXPECT_EQ(numbers_of<T>(*file), counted<T>());
    expect_boxes_of_whole(*file, 10);
    for (const std::string& name : names_in(folder_.path()))
      std::filesystem::remove(folder_ / name);
  }
  const ScratchFolder folder_{ScratchFolder::Medium::kMemory};
};

TEST_F(Raster, BandsOfEveryTypeAreReadByWindows) {
  expect_type<uint8_t>("HFA", GDT_Byte, PixelType::kUint8);
  expect_type<uint16_t>("HFA", GDT_UInt16, PixelType::kUint16);
  expect_type<int16_t>("HFA", GDT_Int16, PixelType::kInt16);
  expect_type<uint32_t>("ENVI", GDT_UInt32, PixelType::kUint32);
  expect_type<int32_t>("ENVI", GDT_Int32, PixelType::kInt32);
  expect_type<float>("HFA", GDT_Float32, PixelType::kFloat32);
  expect_type<double>("ENVI", GDT_Float64, PixelType::kFloat64);
}

TEST_F(Raster, Jpeg2000IsReadByWindows) {
  write_raster<uint16_t>(folder_ / "a.img", "HFA", GDT_UInt16);
  const GDALDriverH driver = GDALGetDriverByName("JP2OpenJPEG");
  if (driver == nullptr) GTEST_SKIP() << "this GDAL does not write JPEG 2000";
  const GDALDatasetH from = GDALOpen((folder_ / "a.img").c_str(), GA_ReadOnly);
  std::vector<std::string> words{"QUALITY=100", "REVERSIBLE=YES", "YCBCR420=NO"};
  std::vector<char*> options{words[0].data(), words[1].data(), words[2].data(), nullptr};
  GDALClose(GDALCreateCopy(driver, (folder_ / "a.jp2").c_str(), from, 0, options.data(), nullptr,
                           nullptr));
  GDALClose(from);
  const auto file = open_array(folder_ / "a.jp2");
  EXPECT_EQ(file->shape(), (Shape{kBands, kHeight, kWidth}));
  EXPECT_EQ(numbers_of<uint16_t>(*file), counted<uint16_t>());
  EXPECT_EQ(file->info().frame.geotransform, kTransform);
  expect_boxes_of_whole(*file, 10);
}

TEST_F(Raster, TheFrameIsThatOfTheMap) {
  write_raster<uint8_t>(folder_ / "a.img", "HFA", GDT_Byte);
  const ImageFrame frame = open_array(folder_ / "a.img")->info().frame;
  EXPECT_EQ(frame.geotransform, kTransform);
  EXPECT_EQ(frame.no_data, 7);
}

TEST_F(Raster, GridsOfTextHaveOneBand) {
  write_bytes(folder_ / "a.asc",
              "ncols 3\nnrows 2\nxllcorner 10\nyllcorner 20\ncellsize 5\nNODATA_value -9999\n"
              "1 2 3\n4 5 -9999\n");
  const auto file = open_array(folder_ / "a.asc");
  EXPECT_EQ(file->shape(), (Shape{1, 2, 3}));
  EXPECT_EQ(numbers_of<int32_t>(*file), (std::vector<int32_t>{1, 2, 3, 4, 5, -9999}));
  EXPECT_EQ(file->info().frame.geotransform, (std::array<double, 6>{10, 5, 0, 30, 0, -5}));
  EXPECT_EQ(file->info().frame.no_data, -9999);
  EXPECT_EQ(names_in(folder_.path()), std::vector<std::string>{"a.asc"});  // nothing written
}

TEST_F(Raster, ARasterThatNamesOthersIsRefused) {
  write_raster<uint8_t>(folder_ / "b.img", "HFA", GDT_Byte);
  write_bytes(folder_ / "a.vrt",
              "<VRTDataset rasterXSize=\"9\" rasterYSize=\"7\"><VRTRasterBand dataType=\"Byte\" "
              "band=\"1\"><SimpleSource><SourceFilename relativeToVRT=\"1\">b.img</SourceFilename>"
              "</SimpleSource></VRTRasterBand></VRTDataset>");
  expect_refusal([&] { open_array(folder_ / "a.vrt"); }, "only names other files");
  // Nor under another ending: its driver is not asked.
  std::filesystem::rename(folder_ / "a.vrt", folder_ / "a.img");
  expect_refusal([&] { open_array(folder_ / "a.img"); }, "is not a raster of its kind");
  expect_refusal([&] { open_array("/vsicurl/http://localhost/a.img"); }, "No such file");
}

}  // namespace
}  // namespace tessera::raster_test
