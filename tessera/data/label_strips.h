#pragma once
// The labels of samples in strips of whole rows, so that nobody holds a whole label map: for those
// who read every label once, in any order and on any thread.
//
// Example:
//   const LabelStrips strips(data, data.size());
//   for (int64_t i = 0; i < strips.size(); ++i) count(strips.load(i).labels);

#include "tessera/data/dataset.h"

namespace tessera {

struct LabelStrip {
  int64_t sample = 0;
  Box box;
  at::Tensor labels;  // int64, contiguous
};

class LabelStrips {
 public:
  /// Of `num_samples` samples, at equal distances among those of the data set. The data set must
  /// outlive this.
  LabelStrips(const Dataset& data, int64_t num_samples);

  int64_t size() const { return num_samples_ * strips_per_sample_; }
  /// Throws what reading throws.
  LabelStrip load(int64_t index) const;

 private:
  const Dataset& data_;
  int64_t num_samples_;
  Shape shape_;
  int64_t rows_ = 1;  // of a strip
  int64_t strips_per_sample_ = 1;
};

}  // namespace tessera
