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

/// Directions that differ by no more are the same: files have them in a few digits.
constexpr double kDirectionTolerance = 1e-3;

struct DicomHeader {
  std::string path = {};
  std::string series = {};  // its UID; empty where the file has none
  int64_t num_frames = 1, height = 0, width = 0, channels = 1;
  PixelType stored = PixelType::kUint8;
  std::vector<LinearScale> scales = {};  // of each frame, or one of all
  /// Directions of rows and columns and size of a pixel (y x) of all frames, where the file says
  /// them.
  std::optional<std::array<DicomVector, 2>> orientation = {};
  std::vector<double> spacing = {};
  /// Distance of frames that have no positions of their own.
  double frame_distance = 0;
  /// Of each frame, or of none.
  std::vector<DicomVector> positions = {};
};

/// Throws InvalidInput for what is not a DICOM image, for images that are not grey or RGB, and for
/// frames that differ in directions or in the size of their pixels.
DicomHeader read_dicom_header(const std::string& path);

}  // namespace tessera
