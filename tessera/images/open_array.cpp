#include "tessera/images/open_array.h"

#include <fmt/ranges.h>

#include <string_view>

#include "tessera/base/error.h"
#include "tessera/images/dicom_files.h"
#include "tessera/images/endings.h"
#include "tessera/images/formats.h"

namespace tessera {
namespace {

/// The options that a format has.
enum class Takes { kNothing, kLevel, kDataset, kShapeAndType };

struct Format {
  std::vector<std::string_view> endings;
  std::unique_ptr<ArrayFile> (*open)(const std::string&, const ArrayOptions&);
  Takes takes = Takes::kNothing;
};

const std::vector<Format>& formats() {
  static const std::vector<Format> all{
      {{".npy"}, open_npy},
      {{".raw"}, open_raw, Takes::kShapeAndType},
      {{".png"}, open_png},
      {{".jpg", ".jpeg"}, open_jpeg},
      {{".tif", ".tiff", ".btf"}, open_tiff, Takes::kLevel},
      {{".svs", ".ndpi", ".mrxs", ".scn", ".vms", ".vmu", ".bif"}, open_slide, Takes::kLevel},
      {{".nii", ".nii.gz"}, open_nifti},
      {{".h5", ".hdf5", ".hdf"}, open_hdf5, Takes::kDataset},
      {{".dcm"}, open_dicom},
      {{".img", ".jp2", ".asc"}, open_raster},
  };
  return all;
}

/// An option without effect would be taken for one that has had it.
void refuse_other_options(const std::string& path, Takes takes, const ArrayOptions& options) {
  const auto refuse = [&](const char* option, const char* formats) {
    throw_error<InvalidInput>("[data] {}: {} is for {}; leave it out", path, option, formats);
  };
  if (takes != Takes::kLevel && options.level != 0) refuse("level=", "TIFF and slides");
  if (takes != Takes::kLevel && options.microns_per_pixel) refuse("mpp=", "TIFF and slides");
  if (takes != Takes::kDataset && !options.dataset.empty()) refuse("dataset=", "HDF5");
  if (takes != Takes::kShapeAndType && !options.raw_shape.empty()) refuse("shape=", "raw files");
  if (takes != Takes::kShapeAndType && options.raw_type) refuse("type=", "raw files");
}

[[noreturn]] void refuse_ending(const std::string& path) {
  if (lower_case(path).ends_with(".vrt"))
    throw_error<InvalidInput>(
        "[data] {}: a virtual raster only names other files, which Tessera does not follow; "
        "convert it, such as by gdal_translate x.vrt x.tif",
        path);
  throw_error<InvalidInput>(
      "[data] {}: the ending is not one of an image; known: {}, and folders of DICOM files", path,
      fmt::join(image_endings(), " "));
}

}  // namespace

std::unique_ptr<ArrayFile> open_array(const std::string& path, const ArrayOptions& options) {
  static const Format folders_of_slices{{}, open_dicom};
  const Format* format = format_by_ending(formats(), path).first;
  if (format == nullptr && is_dicom_folder(path)) format = &folders_of_slices;
  if (format == nullptr) refuse_ending(path);
  refuse_other_options(path, format->takes, options);
  return format->open(path, options);
}

bool is_image_path(const std::string& path) {
  return format_by_ending(formats(), path).first != nullptr || is_dicom_folder(path);
}

std::string image_stem(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  return name.substr(0, name.size() - format_by_ending(formats(), name).second);
}

std::string image_ending(const std::string& path) {
  const auto [format, length] = format_by_ending(formats(), path);
  if (format == nullptr) return is_dicom_folder(path) ? ".dcm" : "";
  return lower_case(path.substr(path.size() - length));
}

std::vector<std::string> image_endings() { return all_endings(formats()); }

}  // namespace tessera
