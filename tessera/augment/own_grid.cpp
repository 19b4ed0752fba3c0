#include "tessera/augment/own_grid.h"

#include "tessera/augment/layout_changes.h"

namespace tessera {
namespace {

/// The inverse of what layout changes do: first the turn, then the stretch about the outer edge.
double laid_out_position(const OwnAxis& axis, int64_t position) {
  const int64_t turned = axis.is_turned ? axis.size - 1 - position : position;
  return (static_cast<double>(turned) + 0.5) / axis.ratio - 0.5;
}

}  // namespace

bool changes_grid(const Preparation& preparation) {
  return preparation.to_ras || !preparation.spacing.empty();
}

std::vector<OwnAxis> own_axes(const Dataset& own, int64_t sample, const Preparation& preparation) {
  const Shape shape = own.image_shape_of(sample);
  ImageFrame frame = own.frame_of(sample);
  std::vector<OwnAxis> axes;
  for (size_t axis = 1; axis < shape.size(); ++axis)
    axes.push_back({.laid_out = static_cast<int>(axis) - 1, .size = shape[axis]});
  if (preparation.to_ras) {
    const AxisMap turn = canonical_axes(frame, Shape(shape.begin() + 1, shape.end()));
    for (size_t axis = 0; axis < axes.size(); ++axis) {
      axes[axis].laid_out = turn.from[axis];
      axes[axis].is_turned = turn.flipped[axis];
    }
    frame = turned_frame(frame, turn);
  }
  if (preparation.spacing.empty()) return axes;
  const std::vector<double> ratios = old_per_new_pixel(frame, preparation.spacing);
  for (OwnAxis& axis : axes) axis.ratio = ratios[axis.laid_out];
  return axes;
}

PatchMap map_from_own_grid(const std::vector<OwnAxis>& axes) {
  return [axes](const Box&) {
    return [axes](const Position& position, int64_t length, Coordinates* row) {
      for (size_t axis = 0; axis < axes.size(); ++axis) {
        std::vector<double>& along = (*row)[axes[axis].laid_out];
        along.resize(static_cast<size_t>(length));
        for (int64_t i = 0; i < length; ++i)
          along[i] = laid_out_position(
              axes[axis], axis + 1 == axes.size() ? position[axis] + i : position[axis]);
      }
    };
  };
}

}  // namespace tessera
