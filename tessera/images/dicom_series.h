#pragma once
// The slices of a DICOM image, in order: one file or a folder of them, one or many frames a file.
// Files come in any order and a folder may hold several series; what is not one stack of equal
// slices at equal distances is refused, because an array could not say it.
//
// For the reader of DICOM only (dicom_array.cpp), which runs in a process of its own.

#include <array>
#include <string>
#include <vector>

#include "tessera/images/image_frame.h"
#include "tessera/images/pixel_type.h"
#include "tessera/images/scaled_numbers.h"

namespace tessera {

struct DicomSlice {
  std::string path = {};
  int64_t frame_index = 0, num_frames = 1;  // in its file
  LinearScale scale = {};
};

struct DicomSeries {
  std::vector<DicomSlice> slices = {};  // along the normal of the slices
  int64_t height = 0, width = 0, channels = 1;
  PixelType stored = PixelType::kUint8;
  ImageFrame frame = {};
};

/// Throws InvalidInput.
DicomSeries read_dicom_series(const std::string& path);

}  // namespace tessera
