#pragma once
// Opens an image file of any known format, chosen by the ending of its name. Formats whose library
// this build does not have are refused with the package to install.
//
// Example:
//   const std::unique_ptr<ArrayFile> slide = open_array("slide.svs", {.level = 1});

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/images/array_file.h"

namespace tessera {

struct ArrayOptions {
  /// Of files that hold an image at several resolutions: 0 is the finest. With microns per pixel
  /// the level whose pixels are nearest to that size.
  int level = 0;
  std::optional<double> microns_per_pixel = {};
  /// The array's name in files that hold several (HDF5); empty: the only one.
  std::string dataset = {};
  /// What a raw file holds.
  Shape raw_shape = {};
  std::optional<PixelType> raw_type = {};
};

/// Throws InvalidInput for a file that cannot be read, an ending that is not known and an option
/// that the format does not have, Unsupported where the build lacks the library.
std::unique_ptr<ArrayFile> open_array(const std::string& path, const ArrayOptions& options = {});

/// Whether the ending of a path is one of an image, or the path is a folder of DICOM files.
bool is_image_path(const std::string& path);

/// The name without folders and without the ending of its format: "scan_0001" of
/// "a/scan_0001.nii.gz".
std::string image_stem(const std::string& path);

/// The ending of a path's format, in small letters: ".nii.gz"; ".dcm" of a folder of DICOM files,
/// and nothing of other paths.
std::string image_ending(const std::string& path);

/// All endings, such as ".tif", those that this build cannot read included.
std::vector<std::string> image_endings();

}  // namespace tessera
