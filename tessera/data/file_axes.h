#pragma once
// Which axis of a file is which axis of a sample. Files have their axes in any order; samples have
// channels first, then space.

#include <vector>

#include "tessera/data/array_reader.h"

namespace tessera {

struct FileAxes {
  static constexpr int kNone = -1;
  /// The axis that counts samples; kNone: the file is one sample.
  int samples = kNone;
  /// The file's axis that is each axis of a sample; kNone: the file has none, its size is 1. Axes
  /// of the file that do not occur have size 1.
  std::vector<int> order = {};
};

/// How many samples a file of these sizes has.
int64_t samples_in(const FileAxes& axes, const Shape& held);
/// The sizes of one.
Shape sample_shape(const FileAxes& axes, const Shape& held);

/// Reads a box of a sample, in the sample's axes, into `target`, a view of the box's shape.
void read_sample(const ArrayReader& file, const FileAxes& axes, int64_t sample, const Box& box,
                 at::Tensor target);

}  // namespace tessera
