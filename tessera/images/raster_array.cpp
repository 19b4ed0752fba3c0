// Rasters of maps by GDAL's C interface: bands are channels, boxes are windows.
//
// GDAL opens far more than files: addresses of the network, databases, and files that name others.
// Only the drivers below are asked, for a path that is a regular file; what a file needs beside it
// must lie in its folder, and .vrt, which is nothing but names of other files, is refused.

#include <cpl_conv.h>
#include <cpl_error.h>
#include <cpl_string.h>
#include <gdal.h>

#include <array>
#include <filesystem>
#include <memory>
#include <mutex>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/files/input_file.h"
#include "tessera/images/flat_array.h"
#include "tessera/images/formats.h"
#include "tessera/images/reader_process.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

/// Erdas Imagine and ENVI (.img), JPEG 2000 by the libraries that GDAL may have, Arc/Info ASCII.
constexpr std::array<const char*, 7> kRasterDrivers{"HFA",    "ENVI",    "JP2OpenJPEG", "JP2KAK",
                                                    "JP2ECW", "AAIGrid", nullptr};
constexpr GIntBig kBlockCacheBytes = 64 << 20;
constexpr int64_t kRasterMemory = 1 << 30;
constexpr int kMostBands = 65'536;

std::string gdal_reason() {
  const std::string reason = CPLGetLastErrorMsg();
  return reason.empty() ? "GDAL gives no reason" : reason;
}

struct CloseRaster {
  void operator()(void* raster) const { GDALClose(raster); }
};
using RasterHandle = std::unique_ptr<void, CloseRaster>;

/// What GDAL takes for parts of the raster lies beside it, links seen through.
void refuse_files_elsewhere(GDALDatasetH raster, const std::string& path) {
  const std::unique_ptr<char*, void (*)(char**)> files(GDALGetFileList(raster), CSLDestroy);
  const fs::path folder = fs::canonical(path).parent_path();
  for (int i = 0; i < CSLCount(files.get()); ++i) {
    std::error_code error;
    const fs::path part = fs::canonical(CSLGetField(files.get(), i), error);
    if (!error && part.parent_path() != folder)
      throw_error<InvalidInput>(
          "[raster] {}: names the file {} in another folder; a raster and its parts lie in one "
          "folder",
          path, part.string());
  }
}

RasterHandle open_gdal(const std::string& path) {
  const InputFile is_regular(path, "raster");
  // A name that GDAL could take for something else than a path begins with a folder here.
  const std::string name = fs::absolute(path).string();
  CPLErrorReset();
  RasterHandle raster(GDALOpenEx(name.c_str(), GDAL_OF_RASTER | GDAL_OF_READONLY,
                                 kRasterDrivers.data(), nullptr, nullptr));
  if (!raster)
    throw_error<InvalidInput>("[raster] {}: is not a raster of its kind, or damaged ({})", path,
                              gdal_reason());
  refuse_files_elsewhere(raster.get(), path);
  return raster;
}

struct RasterType {
  GDALDataType gdal;
  PixelType type;
};
constexpr RasterType kRasterTypes[] = {
    {GDT_Byte, PixelType::kUint8},      {GDT_UInt16, PixelType::kUint16},
    {GDT_Int16, PixelType::kInt16},     {GDT_UInt32, PixelType::kUint32},
    {GDT_Int32, PixelType::kInt32},     {GDT_Float32, PixelType::kFloat32},
    {GDT_Float64, PixelType::kFloat64},
#if GDAL_VERSION_NUM >= 3050000
    {GDT_UInt64, PixelType::kUint64},   {GDT_Int64, PixelType::kInt64},
#endif
#if GDAL_VERSION_NUM >= 3070000
    {GDT_Int8, PixelType::kInt8},
#endif
};

/// The smallest type that holds the numbers of all bands.
RasterType common_type(GDALDatasetH raster, const std::string& path) {
  GDALDataType common = GDT_Unknown;
  for (int band = 1; band <= GDALGetRasterCount(raster); ++band) {
    const GDALDataType type = GDALGetRasterDataType(GDALGetRasterBand(raster, band));
    common = common == GDT_Unknown ? type : GDALDataTypeUnion(common, type);
  }
  for (const RasterType& known : kRasterTypes)
    if (known.gdal == common) return known;
  throw_error<InvalidInput>("[raster] {}: bands of {} are not supported; use integers or floats",
                            path, GDALGetDataTypeName(common));
}

/// The number that stands for "not measured", where all bands have the same.
std::optional<double> common_no_data(GDALDatasetH raster) {
  std::optional<double> common;
  for (int band = 1; band <= GDALGetRasterCount(raster); ++band) {
    int known = 0;
    const double number = GDALGetRasterNoDataValue(GDALGetRasterBand(raster, band), &known);
    if (known == 0 || (band > 1 && common != number)) return std::nullopt;
    common = number;
  }
  return common;
}

class RasterArrayFile final : public ArrayFile {
 public:
  explicit RasterArrayFile(const std::string& path) : ArrayFile(path), raster_(open_gdal(path)) {
    const int bands = GDALGetRasterCount(raster_.get());
    info_.shape = {bands, GDALGetRasterYSize(raster_.get()), GDALGetRasterXSize(raster_.get())};
    info_.axes = "CYX";
    if (bands < 1 || bands > kMostBands || info_.shape[1] < 1 || info_.shape[2] < 1)
      throw_error<InvalidInput>(
          "[raster] {}: {} bands of {}x{} pixels; at least 1 of 1x1, at most "
          "{} bands",
          path, bands, info_.shape[1], info_.shape[2], kMostBands);
    const RasterType type = common_type(raster_.get(), path);
    gdal_type_ = type.gdal;
    info_.type = type.type;
    checked_array_bytes(info_.shape, info_.type, "raster", path);
    std::array<double, 6> transform{};
    if (GDALGetGeoTransform(raster_.get(), transform.data()) == CE_None)
      info_.frame.geotransform = transform;
    if (const char* projection = GDALGetProjectionRef(raster_.get()))
      info_.frame.projection = projection;
    info_.frame.no_data = common_no_data(raster_.get());
  }

  void read(const Box& box, void* to) const override {
    if (box.empty()) return;
    std::vector<int> bands;
    for (int64_t band = box[0].begin; band < box[0].end; ++band)
      bands.push_back(static_cast<int>(band) + 1);
    const auto height = static_cast<int>(box[1].size()), width = static_cast<int>(box[2].size());
    CPLErrorReset();
    if (GDALDatasetRasterIO(raster_.get(), GF_Read, static_cast<int>(box[2].begin),
                            static_cast<int>(box[1].begin), width, height, to, width, height,
                            gdal_type_, static_cast<int>(bands.size()), bands.data(), 0, 0,
                            0) != CE_None)
      throw_error<InvalidInput>("[raster] {}: a window cannot be read ({})", path(), gdal_reason());
  }

 private:
  const RasterHandle raster_;
  GDALDataType gdal_type_ = GDT_Unknown;
};

std::unique_ptr<ArrayFile> open_raster_here(const std::string& path, const ArrayOptions&) {
  static std::once_flag once;
  std::call_once(once, [] {
    CPLSetErrorHandler(CPLQuietErrorHandler);      // what goes wrong is in our message
    CPLSetConfigOption("GDAL_PAM_ENABLED", "NO");  // no .aux.xml, which would be written, too
    GDALSetCacheMax64(kBlockCacheBytes);
    GDALAllRegister();
  });
  return std::make_unique<RasterArrayFile>(path);
}

}  // namespace

std::unique_ptr<ArrayFile> open_raster(const std::string& path, const ArrayOptions& options) {
  return open_in_reader(path, options, open_raster_here, kRasterMemory);
}

}  // namespace tessera
