#pragma once
// Where an image lies in the world: what a file says beside its pixels, and what the file of a
// prediction on it says again.

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

struct ImageFrame {
  /// Size of a pixel in millimetres along each spatial axis, in the order of the image's axes
  /// (z y x). Empty: the file does not say.
  std::vector<double> spacing = {};
  /// Rows of the matrix that takes the index (x, y, z, 1) of a voxel to millimetres, right,
  /// anterior and superior positive, as NIfTI has it.
  std::optional<std::array<double, 12>> affine = {};
  /// From (column, row) to the coordinates of a map, as GDAL has it, and their system (WKT).
  std::optional<std::array<double, 6>> geotransform = {};
  std::string projection = {};
  /// The number that stands for "not measured".
  std::optional<double> no_data = {};

  bool operator==(const ImageFrame&) const = default;
};

}  // namespace tessera
