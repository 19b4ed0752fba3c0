#include "tessera/augment/interpolation.h"

#include <algorithm>
#include <cmath>

#include "tessera/base/error.h"

namespace tessera {
namespace {

constexpr int64_t kPixelsAtOnce = 1 << 19;  // coordinates that are held, at least a slice

/// Where the pixels of a part of the patch lie, and the part of the source around them.
struct Points {
  Coordinates at;  // of all pixels, in row-major order
  Box hull;        // inside the source; empty where no pixel is near it
};

Points points_of(const PatchMap& map, const Box& part, const Shape& source, Outside outside) {
  Points points;
  const int axes = part.num_axes();
  const RowMap rows = map(part);
  Coordinates row;
  const std::vector<int64_t> no_strides(axes, 0);
  for_each_row(part, no_strides, [&](const Position& position, int64_t) {
    rows(position, row_length(part), &row);
    for (int axis = 0; axis < axes; ++axis)
      points.at[axis].insert(points.at[axis].end(), row[axis].begin(), row[axis].end());
  });
  for (int axis = 0; axis < axes; ++axis) {
    std::vector<double>& along = points.at[axis];
    // A pixel beyond its reach is as far away as any other, and its index stays a number.
    const double last = static_cast<double>(source[axis] - 1);
    const double margin = outside == Outside::kNearest ? 0 : 2;
    for (double& each : along) each = std::clamp(each, -margin, last + margin);
    const auto [low, high] = std::minmax_element(along.begin(), along.end());
    const Range touched{static_cast<int64_t>(std::floor(*low)),
                        static_cast<int64_t>(std::floor(*high)) + 2};
    points.hull.push_back(intersect(touched, Range{0, source[axis]}));
  }
  return points;
}

/// Calls visit(part) for slices of the spatial box along its first axis.
template <class Visit>
void for_each_part(const Box& spatial, Visit visit) {
  const int64_t slice = spatial.volume() / spatial[0].size();
  const int64_t rows = std::max<int64_t>(1, kPixelsAtOnce / slice);
  for (int64_t begin = spatial[0].begin; begin < spatial[0].end; begin += rows) {
    Box part = spatial;
    part[0] = {begin, std::min(begin + rows, spatial[0].end)};
    visit(part);
  }
}

/// The neighbours of a point along each axis, and how much they count.
struct Neighbourhood {
  int axes = 0;
  int64_t low[3] = {};
  double above[3] = {};  // the weight of low + 1
};

Neighbourhood around(const Points& points, int axes, int64_t pixel) {
  Neighbourhood found;
  found.axes = axes;
  for (int axis = 0; axis < axes; ++axis) {
    const double at = points.at[axis][pixel];
    const double low = std::floor(at);
    found.low[axis] = static_cast<int64_t>(low);
    found.above[axis] = at - low;
  }
  return found;
}

/// The sum over the corners in one order. Corners without weight are not looked at: what they hold
/// may not be a number.
double blend(const Neighbourhood& point, const Box& hull, const double* plane, double fill) {
  double sum = 0;
  for (int corner = 0; corner < 1 << point.axes; ++corner) {
    double weight = 1;
    int64_t offset = 0;
    bool inside = true;
    for (int axis = 0; axis < point.axes; ++axis) {
      const bool upper = corner >> axis & 1;
      weight *= upper ? point.above[axis] : 1 - point.above[axis];
      const int64_t index = point.low[axis] + upper;
      inside = inside && hull[axis].contains(index);
      offset = offset * hull[axis].size() + index - hull[axis].begin;
    }
    if (weight > 0) sum += weight * (inside ? plane[offset] : fill);
  }
  return sum;
}

at::Tensor part_of(const at::Tensor& target, const Box& whole, const Box& part, int leading) {
  return target.narrow(leading, part[0].begin - whole[0].begin, part[0].size());
}

}  // namespace

void interpolate(const ImageReader& reader, const PatchMap& map, const Box& box,
                 const InterpolationOptions& options, at::Tensor target) {
  if (box.empty()) return;
  const int leading = reader.has_channels ? 1 : 0;
  const Box spatial = spatial_box(reader, box);
  const int64_t channels = leading == 1 ? box[0].size() : 1;
  for_each_part(spatial, [&](const Box& part) {
    const Points points = points_of(map, part, reader.spatial, options.outside);
    at::Tensor read = at::empty({0}, at::kDouble);
    if (!points.hull.empty()) {
      const Box wanted = reader_box(reader, box, points.hull);
      read = at::empty(wanted.shape(), at::kDouble);
      reader.read(wanted, read);
    }
    at::Tensor made = at::empty(reader_box(reader, box, part).shape(), at::kDouble);
    const int64_t pixels = part.volume(), plane = points.hull.volume();
    const double* from = read.data_ptr<double>();
    double* to = made.data_ptr<double>();
    for (int64_t pixel = 0; pixel < pixels; ++pixel) {
      const Neighbourhood point = around(points, part.num_axes(), pixel);
      for (int64_t channel = 0; channel < channels; ++channel)
        to[channel * pixels + pixel] =
            blend(point, points.hull, from + channel * plane, options.fill);
    }
    part_of(target, spatial, part, leading).copy_(made);
  });
}

void nearest(const ImageReader& reader, const PatchMap& map, const Box& box, Outside outside,
             at::Tensor target) {
  if (box.empty()) return;
  for_each_part(box, [&](const Box& part) {
    const Points points = points_of(map, part, reader.spatial, outside);
    at::Tensor read = at::empty(points.hull.shape(), at::kLong);
    if (!points.hull.empty()) reader.read(points.hull, read);
    at::Tensor made = at::empty(part.shape(), at::kLong);
    const int64_t* from = read.data_ptr<int64_t>();
    int64_t* to = made.data_ptr<int64_t>();
    for (int64_t pixel = 0; pixel < part.volume(); ++pixel) {
      int64_t offset = 0;
      bool inside = true;
      for (int axis = 0; axis < part.num_axes(); ++axis) {
        const auto index = static_cast<int64_t>(std::floor(points.at[axis][pixel] + 0.5));
        inside = inside && points.hull[axis].contains(index);
        offset = offset * points.hull[axis].size() + index - points.hull[axis].begin;
      }
      to[pixel] = inside ? from[offset] : kIgnoreLabel;
    }
    part_of(target, box, part, 0).copy_(made);
  });
}

}  // namespace tessera
