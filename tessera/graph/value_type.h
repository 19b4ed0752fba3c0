#pragma once
// What is known of a value before anything runs: its axes, what each of them means, and how many
// input pixels one of its pixels stands for. Placement cuts axes by their kind and stride;
// operators infer the type of their output.

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/geometry/box.h"

namespace tessera {

/// Exact ratio, kept in lowest terms with a positive denominator.
struct Ratio {
  int64_t num = 1;
  int64_t den = 1;
  static Ratio of(int64_t num, int64_t den);
  Ratio operator*(const Ratio& other) const { return of(num * other.num, den * other.den); }
  Ratio operator/(const Ratio& other) const { return of(num * other.den, den * other.num); }
  bool operator<(const Ratio& other) const { return num * other.den < other.num * den; }
  bool operator==(const Ratio&) const = default;
};

enum class AxisKind {
  kBatch,
  kChannel,
  kSpatial,
  kPart,  // one entry per piece of another value: partial sums on their way to their owner
};

struct Axis {
  AxisKind kind = AxisKind::kChannel;
  int64_t size = 0;
  int spatial_index = -1;  // which spatial axis, for kSpatial
  Ratio stride;            // input pixels per pixel, for kSpatial
  bool operator==(const Axis&) const = default;
};

enum class Element {
  kReal,   // float32 or float64, the run's choice
  kIndex,  // int64 class labels
};

struct ValueType {
  std::vector<Axis> axes;
  Element element = Element::kReal;

  /// Batch, channel and spatial axes at stride 1, from a shape such as 1x3x512x512.
  static ValueType image(const Shape& shape);

  Shape shape() const;
  int num_axes() const { return static_cast<int>(axes.size()); }
  int num_spatial() const;
  /// The axis index of the first spatial axis, or num_axes() where there is none.
  int first_spatial() const;
  int64_t batch() const { return axes[0].size; }
  int64_t channels() const { return axes[1].size; }
  bool operator==(const ValueType&) const = default;
};

std::string to_string(const ValueType& type);

}  // namespace tessera
