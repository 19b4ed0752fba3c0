#include "tessera/images/nifti_frame.h"

#include <algorithm>
#include <cmath>

namespace tessera {
namespace {

using AffineRows = std::array<double, 12>;  // three rows of four

constexpr int64_t kSpaceUnits = 7, kMetre = 1, kMillimetre = 2, kMicron = 3;
// "Aligned to something else": a prediction lies where its image lies.
constexpr int64_t kAligned = 2;
// What float32 loses of a rotation, and of one by half a turn.
constexpr double kShearTolerance = 1e-4, kHalfTurnTolerance = 1e-7;

double column_length(const AffineRows& matrix, int column) {
  return std::hypot(matrix[column], matrix[4 + column], matrix[8 + column]);
}

bool is_usable(const AffineRows& matrix) {
  return std::ranges::all_of(matrix, [](double number) { return std::isfinite(number); }) &&
         column_length(matrix, 0) > 0 && column_length(matrix, 1) > 0 &&
         column_length(matrix, 2) > 0;
}

AffineRows from_quaternion(const NiftiFrameFields& fields) {
  auto [b, c, d] = fields.quaternion;
  const double rest = 1 - (b * b + c * c + d * d);
  double a = 0;
  if (rest > kHalfTurnTolerance) {
    a = std::sqrt(rest);
  } else {
    const double length = std::sqrt(b * b + c * c + d * d);
    b /= length, c /= length, d /= length;
  }
  const double dx = fields.pixdim[1], dy = fields.pixdim[2],
               dz = fields.pixdim[0] < 0 ? -fields.pixdim[3] : fields.pixdim[3];
  const auto& [x, y, z] = fields.offset;
  return {(a * a + b * b - c * c - d * d) * dx,
          2 * (b * c - a * d) * dy,
          2 * (b * d + a * c) * dz,
          x,
          2 * (b * c + a * d) * dx,
          (a * a + c * c - b * b - d * d) * dy,
          2 * (c * d - a * b) * dz,
          y,
          2 * (b * d - a * c) * dx,
          2 * (c * d + a * b) * dy,
          (a * a + d * d - b * b - c * c) * dz,
          z};
}

AffineRows from_sizes(const NiftiFrameFields& fields) {
  const double x = std::abs(fields.pixdim[1]), y = std::abs(fields.pixdim[2]),
               z = std::abs(fields.pixdim[3]);
  return {x, 0, 0, 0, 0, y, 0, 0, 0, 0, z, 0};
}

double millimetres(int64_t units) {
  switch (units & kSpaceUnits) {
    case kMetre:
      return 1000;
    case kMicron:
      return 1e-3;
    default:
      return 1;
  }
}

/// b c d of the rotation with a >= 0; the columns are perpendicular, of length 1 and right-handed.
std::array<double, 3> quaternion_of(const AffineRows& r) {
  const double trace = r[0] + r[5] + r[10];
  if (trace > 0) {
    const double s = 2 * std::sqrt(trace + 1);
    return {(r[9] - r[6]) / s, (r[2] - r[8]) / s, (r[4] - r[1]) / s};
  }
  double a = 0;
  std::array<double, 3> bcd{};
  if (r[0] >= r[5] && r[0] >= r[10]) {
    const double s = 2 * std::sqrt(1 + r[0] - r[5] - r[10]);
    a = (r[9] - r[6]) / s;
    bcd = {s / 4, (r[1] + r[4]) / s, (r[2] + r[8]) / s};
  } else if (r[5] >= r[10]) {
    const double s = 2 * std::sqrt(1 + r[5] - r[0] - r[10]);
    a = (r[2] - r[8]) / s;
    bcd = {(r[1] + r[4]) / s, s / 4, (r[6] + r[9]) / s};
  } else {
    const double s = 2 * std::sqrt(1 + r[10] - r[0] - r[5]);
    a = (r[4] - r[1]) / s;
    bcd = {(r[2] + r[8]) / s, (r[6] + r[9]) / s, s / 4};
  }
  if (a < 0)
    for (double& part : bcd) part = -part;
  return bcd;
}

double column_product(const AffineRows& matrix, int a, int b) {
  return matrix[a] * matrix[b] + matrix[4 + a] * matrix[4 + b] + matrix[8 + a] * matrix[8 + b];
}

double determinant(const AffineRows& m) {
  return m[0] * (m[5] * m[10] - m[6] * m[9]) - m[1] * (m[4] * m[10] - m[6] * m[8]) +
         m[2] * (m[4] * m[9] - m[5] * m[8]);
}

/// Sets the rotation; false where there is shear, which it cannot say.
bool take_rotation(AffineRows matrix, NiftiFrameFields* fields) {
  fields->offset = {matrix[3], matrix[7], matrix[11]};
  for (int column = 0; column < 3; ++column) {
    const double length = column_length(matrix, column);
    for (int row = 0; row < 3; ++row) matrix[4 * row + column] /= length;
  }
  if (std::abs(column_product(matrix, 0, 1)) > kShearTolerance ||
      std::abs(column_product(matrix, 0, 2)) > kShearTolerance ||
      std::abs(column_product(matrix, 1, 2)) > kShearTolerance)
    return false;
  if (determinant(matrix) < 0) {
    fields->pixdim[0] = -1;
    for (int row = 0; row < 3; ++row) matrix[4 * row + 2] *= -1;
  }
  fields->quaternion = quaternion_of(matrix);
  return true;
}

}  // namespace

ImageFrame frame_of(NiftiFrameFields fields, bool with_depth) {
  ImageFrame frame;
  if (!with_depth && fields.pixdim[3] == 0) fields.pixdim[3] = 1;  // flat images may not say
  AffineRows matrix = fields.srow;
  bool usable = fields.sform_code > 0 && is_usable(matrix);
  if (!usable && fields.qform_code > 0) usable = is_usable(matrix = from_quaternion(fields));
  if (!usable) usable = is_usable(matrix = from_sizes(fields));
  if (!usable) return frame;
  for (double& number : matrix) number *= millimetres(fields.units);
  frame.affine = matrix;
  for (int column = with_depth ? 2 : 1; column >= 0; --column)
    frame.spacing.push_back(column_length(matrix, column));
  return frame;
}

NiftiFrameFields fields_of(const ImageFrame& frame) {
  NiftiFrameFields fields;
  fields.pixdim = {1, 1, 1, 1};
  fields.units = kMillimetre;
  const size_t num_axes = std::min<size_t>(3, frame.spacing.size());
  for (size_t i = 0; i < num_axes; ++i)
    fields.pixdim[i + 1] = frame.spacing[frame.spacing.size() - 1 - i];
  if (!frame.affine || !is_usable(*frame.affine)) return fields;
  for (int column = 0; column < 3; ++column)
    fields.pixdim[column + 1] = column_length(*frame.affine, column);
  fields.sform_code = kAligned;
  fields.srow = *frame.affine;
  if (take_rotation(*frame.affine, &fields)) fields.qform_code = kAligned;
  return fields;
}

}  // namespace tessera
