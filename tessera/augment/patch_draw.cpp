#include "tessera/augment/patch_draw.h"

#include <cmath>
#include <memory>
#include <numbers>

#include "tessera/augment/draws.h"
#include "tessera/augment/elastic.h"

namespace tessera {
namespace {

Matrix3 identity_matrix() { return {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}}; }

Matrix3 product(const Matrix3& a, const Matrix3& b) {
  Matrix3 made{};
  for (int row = 0; row < 3; ++row)
    for (int column = 0; column < 3; ++column)
      for (int i = 0; i < 3; ++i) made[row][column] += a[row][i] * b[i][column];
  return made;
}

/// Turns, slants and sizes; the source's pixels per pixel of the patch, so that a factor above 1
/// makes things larger.
Matrix3 drawn_affine(const RandomKey& key, const AffineChange& change, int axes) {
  Matrix3 matrix = identity_matrix();
  uint64_t plane = 0;
  for (int first = 0; first < axes; ++first)
    for (int second = first + 1; second < axes; ++second, ++plane) {
      const double angle =
          change.rotate * std::numbers::pi / 180 * to_both_sides(key.with("rotate"), plane);
      Matrix3 turn = identity_matrix();
      turn[first][first] = turn[second][second] = std::cos(angle);
      turn[first][second] = -std::sin(angle);
      turn[second][first] = std::sin(angle);
      Matrix3 slant = identity_matrix();
      slant[first][second] = change.shear * to_both_sides(key.with("shear"), plane);
      matrix = product(product(turn, slant), matrix);
    }
  for (int axis = 0; axis < axes; ++axis) {
    const double size = drawn_factor(key.with("scale"), static_cast<uint64_t>(axis), change.scale);
    for (int row = 0; row < axes; ++row) matrix[row][axis] /= size;
  }
  return matrix;
}

/// The same in pixels that are not as high as they are wide.
Matrix3 in_pixels(Matrix3 matrix, const std::vector<double>& spacing) {
  for (size_t row = 0; row < spacing.size(); ++row)
    for (size_t column = 0; column < spacing.size(); ++column)
      matrix[row][column] *= spacing[column] / spacing[row];
  return matrix;
}

}  // namespace

PatchDraw::PatchDraw(const RandomKey& key, const Augmentation& augmentation, const Shape& patch,
                     const Shape& spatial, const std::vector<double>& spacing)
    : key_(key), axes_(crop_at(std::vector<int64_t>(patch.size(), 0), patch)) {
  const int axes = static_cast<int>(patch.size());
  turn(key, augmentation, spatial);
  if (applies(augmentation.affine, key.with("affine"))) {
    const RandomKey own = key.with("affine");
    matrix_ = in_pixels(drawn_affine(own, *augmentation.affine, axes), spacing);
    for (int axis = 0; axis < axes; ++axis)
      shift_[axis] = augmentation.affine->translate *
                     to_both_sides(own.with("translate"), static_cast<uint64_t>(axis)) *
                     static_cast<double>(axes_.extent(axis));
  }
  if (applies(augmentation.zoom, key.with("zoom"))) {
    const ZoomChange& zoom = *augmentation.zoom;
    const double size = zoom.low + (zoom.high - zoom.low) * key.with("zoom").uniform(0);
    if (!matrix_) matrix_ = identity_matrix();
    for (auto& row : *matrix_)
      for (double& each : row) each /= size;
  }
  if (applies(augmentation.elastic, key.with("elastic"))) elastic_ = augmentation.elastic;
}

void PatchDraw::turn(const RandomKey& key, const Augmentation& augmentation, const Shape& spatial) {
  const int axes = axes_.num_axes();
  if (augmentation.flip) {
    const std::string letters = axis_letters(axes);
    const std::string& chosen = augmentation.flip->axes;
    for (int axis = 0; axis < axes; ++axis)
      if (chosen.empty() || chosen.find(letters[axis]) != std::string::npos)
        axes_.flipped[axis] =
            key.with("flip").uniform(static_cast<uint64_t>(axis)) < augmentation.flip->probability;
  }
  const RandomKey own = key.with("rotate90");
  if (axes < 2 || !applies(augmentation.rotate90, own)) return;
  const int first_plane = augmentation.rotate90->all_planes ? 0 : axes - 2;
  for (int first = first_plane; first + 1 < axes; ++first)
    for (int second = first + 1; second < axes; ++second)
      turn_plane(static_cast<int64_t>(own.bits(static_cast<uint64_t>(first * 3 + second)) % 4),
                 first, second, spatial);
}

/// By so many quarters. A quarter swaps the two sides: where they differ, the source must be large
/// enough for that, or else half a turn is what is left.
void PatchDraw::turn_plane(int64_t quarters, int first, int second, const Shape& spatial) {
  const bool swaps = quarters % 2 == 1;
  const bool fits =
      axes_.extent(first) == axes_.extent(second) ||
      (axes_.extent(first) <= spatial[second] && axes_.extent(second) <= spatial[first]);
  if (swaps && fits) {
    std::swap(axes_.from[first], axes_.from[second]);
    axes_.flipped[quarters == 1 ? first : second].flip();
  } else if (quarters >= 2) {
    axes_.flipped[first].flip();
    axes_.flipped[second].flip();
  }
}

Shape PatchDraw::extents() const {
  Shape extents;
  for (int axis = 0; axis < axes_.num_axes(); ++axis) extents.push_back(axes_.extent(axis));
  return extents;
}

PatchMap PatchDraw::map() const {
  return [this](const Box& box) { return row_map(box); };
}

RowMap PatchDraw::row_map(const Box& box) const {
  std::shared_ptr<const Elastic> elastic;
  if (elastic_)
    elastic = std::make_shared<const Elastic>(key_.with("elastic"), *elastic_, axes_.patch, box);
  const Matrix3 matrix = matrix_.value_or(identity_matrix());
  return [this, elastic, matrix](const Position& position, int64_t length, Coordinates* row) {
    const int axes = axes_.num_axes();
    for (int axis = 0; axis < axes; ++axis) (*row)[axis].resize(static_cast<size_t>(length));
    for (int64_t i = 0; i < length; ++i) {
      std::array<double, 3> turned{};  // from the centre of the patch, along the source's axes
      for (int axis = 0; axis < axes; ++axis) {
        const int from = axes_.from[axis];
        const int64_t at = from + 1 == axes ? position[from] + i : position[from];
        const double middle = static_cast<double>(axes_.patch[from] - 1) / 2;
        const double away = static_cast<double>(at) - middle;
        turned[axis] = axes_.flipped[axis] ? -away : away;
      }
      for (int axis = 0; axis < axes; ++axis) {
        const double centre = static_cast<double>(axes_.origin[axis]) +
                              static_cast<double>(axes_.extent(axis) - 1) / 2;
        double sum = 0;
        for (int other = 0; other < axes; ++other) sum += matrix[axis][other] * turned[other];
        (*row)[axis][i] = centre + shift_[axis] + sum;
      }
    }
    if (elastic) elastic->add_to_row(position, length, row);
  };
}

}  // namespace tessera
