#pragma once
// What Tessera needs of the header of a DICOM file.
//
// For the reader of DICOM only (dicom_series.h).

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/images/pixel_type.h"
#include "tessera/images/scaled_numbers.h"

namespace tessera {

using DicomVector = std::array<double, 3>;

struct DicomHeader {
  std::string path = {};
  std::string series = {};  // its UID; empty where the file has none
  int64_t num_frames = 1, height = 0, width = 0, channels = 1;
  PixelType stored = PixelType::kUint8;
  LinearScale scale = {};
  /// Directions of rows and columns and size of a pixel (y x), where the file says them.
  std::optional<std::array<DicomVector, 2>> orientation = {};
  std::vector<double> spacing = {};
  /// Distance of frames that have no positions of their own.
  double frame_distance = 0;
  /// Of each frame, or of none.
  std::vector<DicomVector> positions = {};
};

/// Throws InvalidInput for what is not a DICOM image, and for images that are not grey or RGB.
DicomHeader read_dicom_header(const std::string& path);

}  // namespace tessera
