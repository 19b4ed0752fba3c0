#include "tessera/kernels/confusion.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "tessera/base/error.h"
#include "tessera/geometry/box.h"
#include "tessera/kernels/cpu/classify.h"

namespace tessera {
namespace {

Shape shape_of(const at::Tensor& tensor) { return {tensor.sizes().begin(), tensor.sizes().end()}; }

void check_labels(const at::Tensor& labels) {
  if (labels.scalar_type() != at::kLong || labels.dim() < 1)
    throw_error<InvalidInput>("[metrics] labels are {} of {}; give int64 with a batch axis",
                              c10::toString(labels.scalar_type()), to_string(shape_of(labels)));
}

/// A table per thread, added to the common one when the thread is done with its rows.
class Tally {
 public:
  Tally(int64_t num_classes, int64_t ignore_index)
      : num_classes_(num_classes),
        ignore_index_(ignore_index),
        counts_(num_classes * num_classes) {}

  void count(int64_t label, int64_t prediction) {
    if (label == ignore_index_) return;
    if (label < 0 || label >= num_classes_)
      throw_error<InvalidInput>(
          "[metrics] label {} is not in [0, {}) and is not the ignored label {}", label,
          num_classes_, ignore_index_);
    ++counts_[label * num_classes_ + prediction];
  }
  void add_to(std::vector<int64_t>& total) const {
    std::transform(total.begin(), total.end(), counts_.begin(), total.begin(), std::plus<>());
  }

 private:
  int64_t num_classes_;
  int64_t ignore_index_;
  std::vector<int64_t> counts_;
};

/// Calls body(row, tally) for all rows (positions of the axes before the last), in parallel. Counts
/// nothing where a body throws.
template <class Body>
void tally_rows(const at::Tensor& labels, int64_t ignore_index, int64_t num_classes,
                std::vector<int64_t>& counts, const Body& body) {
  constexpr int64_t kPixelsPerTask = 1 << 14;
  if (labels.numel() == 0) return;
  const int64_t row_size = labels.size(-1);
  std::vector<int64_t> sum(counts.size());
  std::mutex mutex;
  at::parallel_for(0, labels.numel() / row_size, std::max<int64_t>(1, kPixelsPerTask / row_size),
                   [&](int64_t begin, int64_t end) {
                     Tally tally(num_classes, ignore_index);
                     for (int64_t row = begin; row < end; ++row) body(row, tally);
                     const std::lock_guard<std::mutex> lock(mutex);
                     tally.add_to(sum);
                   });
  std::transform(counts.begin(), counts.end(), sum.begin(), counts.begin(), std::plus<>());
}

void check_logits(const at::Tensor& logits, const at::Tensor& labels, int64_t num_classes) {
  Shape legal = shape_of(labels);
  legal.insert(legal.begin() + 1, num_classes);
  if (shape_of(logits) != legal)
    throw_error<InvalidInput>("[metrics] logits are {}; labels {} and {} classes need {}",
                              to_string(shape_of(logits)), to_string(shape_of(labels)), num_classes,
                              to_string(legal));
}

}  // namespace

namespace cpu {

void count_logits(const at::Tensor& logits, const at::Tensor& labels, int64_t ignore_index,
                  int64_t num_classes, std::vector<int64_t>& counts) {
  check_labels(labels);
  check_logits(logits, labels, num_classes);
  const int64_t class_stride = logits.stride(1), row_size = labels.size(-1);
  std::vector<int64_t> strides = logits.strides().vec();  // without the classes, as the labels
  strides.erase(strides.begin() + 1);
  AT_DISPATCH_FLOATING_TYPES(logits.scalar_type(), "count_logits", [&] {
    const scalar_t* const scores = logits.data_ptr<scalar_t>();
    const int64_t* const truth = labels.data_ptr<int64_t>();
    tally_rows(labels, ignore_index, num_classes, counts, [&](int64_t row, Tally& tally) {
      const scalar_t* row_scores = scores + row_begin(row, labels.sizes(), strides);
      const int64_t* row_truth = truth + row_begin(row, labels.sizes(), labels.strides());
      int64_t prediction[kClassifiedAtATime];
      for (int64_t column = 0; column < row_size; column += kClassifiedAtATime) {
        const int64_t size = std::min(kClassifiedAtATime, row_size - column);
        classify(row_scores + column * strides.back(), num_classes, class_stride, strides.back(),
                 size, prediction);
        for (int64_t p = 0; p < size; ++p)
          tally.count(row_truth[(column + p) * labels.stride(-1)], prediction[p]);
      }
    });
  });
}

void count_predictions(const at::Tensor& predictions, const at::Tensor& labels,
                       int64_t ignore_index, int64_t num_classes, std::vector<int64_t>& counts) {
  check_labels(labels);
  check_labels(predictions);
  if (predictions.sizes() != labels.sizes())
    throw_error<InvalidInput>("[metrics] predictions are {}, labels {}; give the same shape",
                              to_string(shape_of(predictions)), to_string(shape_of(labels)));
  const int64_t* const predicted = predictions.data_ptr<int64_t>();
  const int64_t* const truth = labels.data_ptr<int64_t>();
  tally_rows(labels, ignore_index, num_classes, counts, [&](int64_t row, Tally& tally) {
    const int64_t* row_predicted =
        predicted + row_begin(row, labels.sizes(), predictions.strides());
    const int64_t* row_truth = truth + row_begin(row, labels.sizes(), labels.strides());
    for (int64_t p = 0; p < labels.size(-1); ++p) {
      const int64_t prediction = row_predicted[p * predictions.stride(-1)];
      if (prediction < 0 || prediction >= num_classes)
        throw_error<InvalidInput>("[metrics] prediction {} is not in [0, {})", prediction,
                                  num_classes);
      tally.count(row_truth[p * labels.stride(-1)], prediction);
    }
  });
}

}  // namespace cpu

const ConfusionKernels ConfusionKernels::kCpu{.count_logits = cpu::count_logits,
                                              .count_predictions = cpu::count_predictions};

}  // namespace tessera
