#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "tessera/augment/decorator.h"
#include "tessera/augment/layout_changes.h"
#include "tessera/base/error.h"

namespace tessera {
namespace {

/// Axis z y x of an image is column 2 1 0 of an affine, and the other way round.
constexpr int column_of(int axis) { return 2 - axis; }

class Oriented : public DatasetDecorator {
 public:
  explicit Oriented(std::shared_ptr<const Dataset> source);

  Shape image_shape() const override { return image_shape_; }
  Shape image_shape_of(int64_t sample) const override;
  Shape target_shape() const override { return target_shape_; }
  Shape target_shape_of(int64_t sample) const override;
  ImageFrame frame_of(int64_t sample) const override {
    return turned_frame(source().frame_of(sample), axes_of(sample));
  }
  void load_image(Sample sample, const Box& box, at::Tensor target) const override {
    copy_by_axes(image_reader(source(), sample), axes_of(sample), box, 0, target);
  }
  void load_target(Sample sample, const Box& box, at::Tensor target) const override;

 private:
  AxisMap axes_of(int64_t sample) const;

  Shape image_shape_, target_shape_;
};

Oriented::Oriented(std::shared_ptr<const Dataset> source) : DatasetDecorator(std::move(source)) {
  for (int64_t sample = 0; sample < this->source().size(); ++sample) {
    const Shape shape = this->source().image_shape_of(sample);
    if (shape.size() != 4 || !this->source().frame_of(sample).affine)
      throw_error<InvalidInput>(
          "[--orientation] sample {}, {} (channels x space), {}; leave --orientation out, or give "
          "volumes with an affine, such as NIfTI files",
          this->source().name_of(sample), to_string(shape),
          shape.size() != 4 ? "is not a volume" : "does not say where it lies");
    // Empty where sizes differ.
    const Shape image = image_shape_of(sample), target = target_shape_of(sample);
    if (sample == 0) image_shape_ = image, target_shape_ = target;
    if (image != image_shape_) image_shape_.clear();
    if (target != target_shape_) target_shape_.clear();
  }
}

AxisMap Oriented::axes_of(int64_t sample) const {
  const Shape shape = source().image_shape_of(sample);
  return canonical_axes(source().frame_of(sample), Shape(shape.begin() + 1, shape.end()));
}

Shape Oriented::image_shape_of(int64_t sample) const {
  Shape shape = axes_of(sample).patch;
  shape.insert(shape.begin(), source().image_shape_of(sample).at(0));
  return shape;
}

Shape Oriented::target_shape_of(int64_t sample) const {
  Shape shape = source().target_shape_of(sample);
  if (!targets_have_pixels(source(), sample)) return shape;
  const Shape patch = axes_of(sample).patch;
  std::copy(patch.begin(), patch.end(), shape.end() - 3);
  return shape;
}

void Oriented::load_target(Sample sample, const Box& box, at::Tensor target) const {
  if (!targets_have_pixels(source(), sample)) return source().load_target(sample, box, target);
  copy_by_axes(target_reader(source(), sample), axes_of(sample), box, 0, target);
}

}  // namespace

AxisMap canonical_axes(const ImageFrame& frame, const Shape& spatial) {
  const std::array<double, 12>& affine = frame.affine.value();
  AxisMap map{Shape(3, 0), std::vector<int>(3, 0), std::vector<bool>(3, false),
              std::vector<int64_t>(3, 0)};
  // Of all assignments of the file's axes to those of the world, the one that agrees best.
  std::array<int, 3> order{0, 1, 2}, best = order;  // of each row of the affine: its column
  double most = -1;
  std::array<double, 3> length{};
  for (int column = 0; column < 3; ++column)
    length[column] = std::hypot(affine[column], affine[4 + column], affine[8 + column]);
  do {
    double agreement = 0;
    for (int row = 0; row < 3; ++row)
      agreement += std::abs(affine[4 * row + order[row]]) / std::max(length[order[row]], 1e-300);
    if (agreement > most + 1e-9) most = agreement, best = order;
  } while (std::next_permutation(order.begin(), order.end()));
  for (int row = 0; row < 3; ++row) {
    const int source_axis = column_of(best[row]), made_axis = column_of(row);
    map.from[source_axis] = made_axis;
    map.flipped[source_axis] = affine[4 * row + best[row]] < 0;
    map.patch[made_axis] = spatial[source_axis];
  }
  return map;
}

ImageFrame turned_frame(const ImageFrame& frame, const AxisMap& axes) {
  ImageFrame made = frame;
  if (frame.spacing.size() == 3)
    for (int axis = 0; axis < 3; ++axis) made.spacing[axes.from[axis]] = frame.spacing[axis];
  if (!frame.affine) return made;
  for (int row = 0; row < 3; ++row) {
    const double* const from = frame.affine->data() + 4 * row;
    double* const to = made.affine->data() + 4 * row;
    to[3] = from[3];
    for (int axis = 0; axis < 3; ++axis) {
      const double step = from[column_of(axis)];
      to[column_of(axes.from[axis])] = axes.flipped[axis] ? -step : step;
      if (axes.flipped[axis]) to[3] += step * static_cast<double>(axes.extent(axis) - 1);
    }
  }
  return made;
}

std::shared_ptr<const Dataset> oriented(std::shared_ptr<const Dataset> source) {
  return std::make_shared<Oriented>(std::move(source));
}

}  // namespace tessera
