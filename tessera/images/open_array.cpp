#include "tessera/images/open_array.h"

#include <algorithm>
#include <string_view>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/images/dicom_files.h"
#include "tessera/images/formats.h"

namespace tessera {
namespace {

struct Format {
  std::vector<std::string_view> endings;
  std::unique_ptr<ArrayFile> (*open)(const std::string&, const ArrayOptions&);
};

const std::vector<Format>& formats() {
  static const std::vector<Format> all{
      {{".npy"}, open_npy},
      {{".raw"}, open_raw},
      {{".png"}, open_png},
      {{".jpg", ".jpeg"}, open_jpeg},
      {{".tif", ".tiff", ".btf"}, open_tiff},
      {{".svs", ".ndpi", ".mrxs", ".scn", ".vms", ".vmu", ".bif"}, open_slide},
      {{".nii", ".nii.gz"}, open_nifti},
      {{".h5", ".hdf5", ".hdf"}, open_hdf5},
      {{".dcm"}, open_dicom},
      {{".vrt", ".img", ".jp2", ".asc"}, open_raster},
  };
  return all;
}

/// The format of a path and the length of its ending; null where none fits.
std::pair<const Format*, size_t> format_of(const std::string& path) {
  const std::string name = lower_case(path);
  for (const Format& format : formats())
    for (std::string_view ending : format.endings)
      if (name.ends_with(ending)) return {&format, ending.size()};
  return {nullptr, 0};
}

}  // namespace

std::unique_ptr<ArrayFile> open_array(const std::string& path, const ArrayOptions& options) {
  const Format* format = format_of(path).first;
  if (format == nullptr && is_dicom_folder(path)) return open_dicom(path, options);
  if (format == nullptr)
    throw_error<InvalidInput>(
        "[data] {}: the ending is not one of an image; known: {}, and folders of DICOM files", path,
        fmt::join(image_endings(), " "));
  return format->open(path, options);
}

bool is_image_path(const std::string& path) {
  return format_of(path).first != nullptr || is_dicom_folder(path);
}

std::string image_stem(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  return name.substr(0, name.size() - format_of(name).second);
}

std::string image_ending(const std::string& path) {
  const auto [format, length] = format_of(path);
  if (format == nullptr) return is_dicom_folder(path) ? ".dcm" : "";
  return lower_case(path.substr(path.size() - length));
}

std::vector<std::string> image_endings() {
  std::vector<std::string> endings;
  for (const Format& format : formats())
    endings.insert(endings.end(), format.endings.begin(), format.endings.end());
  return endings;
}

}  // namespace tessera
