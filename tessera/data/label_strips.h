#pragma once
// The labels of samples in strips of whole rows, so that nobody holds a whole label map: for those
// who read every label once, in any order and on any thread. Samples may differ in size; those
// without a target have no strips.
//
// Example:
//   const LabelStrips strips(data, data.size());
//   for (int64_t i = 0; i < strips.size(); ++i) count(strips.load(i).labels);

#include <functional>
#include <vector>

#include "tessera/data/dataset.h"

namespace tessera {

struct LabelStrip {
  int64_t sample = 0;
  Box box;
  at::Tensor labels = {};  // int64, contiguous
};

class LabelStrips {
 public:
  /// Of `num_samples` samples, at equal distances among those of the data set. The data set must
  /// outlive this.
  LabelStrips(const Dataset& data, int64_t num_samples);

  int64_t size() const { return first_strips_.back(); }
  /// The strip without its labels.
  LabelStrip place_of(int64_t index) const;
  /// Throws what reading throws.
  LabelStrip load(int64_t index) const;

 private:
  int64_t sample_at(int64_t place) const { return place * data_.size() / num_samples_; }

  const Dataset& data_;
  int64_t num_samples_;
  std::vector<int64_t> first_strips_{0};  // of each sample, and the number of all at the end
};

/// All strips of one sample, from the first row to the last.
void for_each_label_strip(const Dataset& data, int64_t sample,
                          const std::function<void(const LabelStrip&)>& visit);

}  // namespace tessera
