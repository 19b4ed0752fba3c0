#include "tessera/augment/elastic.h"

namespace tessera {

Elastic::Elastic(const RandomKey& key, const ElasticChange& change, const Shape& patch,
                 const Box& box)
    : axes_(box.num_axes()), spacing_(change.spacing) {
  // Point i of an axis lies at (i - 1) * spacing: a position has one point before its cell.
  for (int axis = 0; axis < axes_; ++axis)
    points_.push_back({box[axis].begin / spacing_, (box[axis].end - 1) / spacing_ + 4});
  const std::vector<int64_t> no_strides(axes_, 0);
  for (int component = 0; component < axes_; ++component) {
    const RandomKey own = key.with(static_cast<uint64_t>(component));
    std::vector<double>& values = values_.emplace_back();
    for_each_row(points_, no_strides, [&](const Position& at, int64_t) {
      for (int64_t i = 0; i < row_length(points_); ++i) {
        uint64_t index = 0;
        for (int axis = 0; axis < axes_; ++axis) {
          const int64_t point = axis + 1 == axes_ ? at[axis] + i : at[axis];
          index = index * static_cast<uint64_t>(patch[axis] / spacing_ + 4) +
                  static_cast<uint64_t>(point);
        }
        values.push_back(change.size * own.normal(index));
      }
    });
  }
}

Elastic::Spline Elastic::spline_at(int64_t position) const {
  const double u = static_cast<double>(position % spacing_) / static_cast<double>(spacing_);
  const double v = 1 - u;
  return {position / spacing_,
          {v * v * v / 6, (3 * u * u * u - 6 * u * u + 4) / 6, (3 * v * v * v - 6 * v * v + 4) / 6,
           u * u * u / 6}};
}

void Elastic::points_on_line(const Position& position, int component,
                             std::vector<double>* line) const {
  const std::vector<double>& values = values_[component];
  const int64_t length = row_length(points_);
  line->assign(static_cast<size_t>(length), 0);
  const int others = axes_ - 1;
  Spline splines[2];
  for (int axis = 0; axis < others; ++axis) splines[axis] = spline_at(position[axis]);
  for (int choice = 0; choice < 1 << (2 * others); ++choice) {
    double weight = 1;
    int64_t offset = 0;
    for (int axis = 0; axis < others; ++axis) {
      const int point = choice >> (2 * axis) & 3;
      weight *= splines[axis].weights[point];
      offset = offset * points_[axis].size() + splines[axis].first + point - points_[axis].begin;
    }
    for (int64_t i = 0; i < length; ++i) (*line)[i] += weight * values[offset * length + i];
  }
}

void Elastic::add_to_row(const Position& position, int64_t length, Coordinates* row) const {
  std::vector<double> line;
  for (int component = 0; component < axes_; ++component) {
    points_on_line(position, component, &line);
    for (int64_t i = 0; i < length; ++i) {
      const Spline spline = spline_at(position[axes_ - 1] + i);
      const double* const first = line.data() + spline.first - points_[axes_ - 1].begin;
      double sum = 0;
      for (int point = 0; point < 4; ++point) sum += spline.weights[point] * first[point];
      (*row)[component][i] += sum;
    }
  }
}

}  // namespace tessera
