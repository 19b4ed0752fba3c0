#pragma once
// What a TIFF says beside its pixels: the size of a pixel (resolution tags, ImageJ, OME), a place
// on a map (GeoTIFF), and what its pages are.

#include <string>
#include <utility>
#include <vector>

#include "tessera/images/image_frame.h"
#include "tessera/images/tiff_handle.h"

namespace tessera {

/// The tags of GeoTIFF and GDAL.
constexpr uint32_t kTiffPixelScale = 33550;
constexpr uint32_t kTiffTiepoint = 33922;
constexpr uint32_t kTiffTransformation = 34264;
constexpr uint32_t kTiffGeoKeys = 34735;
constexpr uint32_t kTiffNoData = 42113;

/// The keys among kTiffGeoKeys that Tessera reads and writes.
constexpr int kGeoKeyModelType = 1024;
constexpr int kGeoKeyRasterType = 1025;
constexpr int kGeoKeyGeographic = 2048;
constexpr int kGeoKeyProjected = 3072;

/// The axes that pages stand for, slowest first, and their sizes: {{'Z', 20}, {'C', 3}} where the
/// file says so, and its pages are as many; else {{'P', pages}}. No axis for one page.
std::vector<std::pair<char, int64_t>> axes_of_pages(TiffHandle& handle, int64_t num_pages);

/// Of the directory where the handle is. Spacing is that of z, y and x where `has_depth`, and of y
/// and x else. A projection is its EPSG code, such as "EPSG:32633".
ImageFrame tiff_frame(TiffHandle& handle, bool has_depth);

}  // namespace tessera
