#include "tessera/train/label_check.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>

#include "tessera/base/error.h"
#include "tessera/base/slow_work.h"
#include "tessera/comm/together.h"

namespace tessera {
namespace {

constexpr int64_t kMostSampled = 100;       // of each of the two sets
constexpr int64_t kLabelsAtOnce = 1 << 18;  // of one read, at least a row

/// The labels of some samples as a list of boxes, each a few rows of one sample.
class LabelBoxes {
 public:
  LabelBoxes(const Subset& data, int64_t num_samples)
      : data_(data), num_samples_(num_samples), shape_(data.target_shape()) {
    if (shape_.empty()) return;
    const int64_t row = Box::whole(shape_).volume() / shape_[0];
    rows_at_once_ = std::clamp<int64_t>(kLabelsAtOnce / row, 1, shape_[0]);
    boxes_per_sample_ = (shape_[0] + rows_at_once_ - 1) / rows_at_once_;
  }
  int64_t size() const { return num_samples_ * boxes_per_sample_; }

  /// Throws InvalidInput for a label that is not legal.
  void check(int64_t index) const {
    const int64_t sample = index / boxes_per_sample_ * data_.size() / num_samples_;
    Box box = Box::whole(shape_);
    if (!shape_.empty()) {
      const int64_t begin = index % boxes_per_sample_ * rows_at_once_;
      box[0] = {begin, std::min(begin + rows_at_once_, shape_[0])};
    }
    const at::Tensor labels = at::empty(box.shape(), at::kLong);
    data_.load_target(sample, box, labels);
    const int64_t* values = labels.data_ptr<int64_t>();
    const int64_t classes = data_.num_classes();
    for (int64_t i = 0; i < labels.numel(); ++i)
      if ((values[i] < 0 || values[i] >= classes) && values[i] != kIgnoreLabel)
        throw_error<InvalidInput>(
            "[--data] label {} in sample {} at element {} of {}; legal: 0 to {}, and {} to ignore "
            "a pixel",
            values[i], data_.samples()[sample], i, to_string(box), classes - 1, kIgnoreLabel);
  }

 private:
  const Subset& data_;
  int64_t num_samples_;
  Shape shape_;
  int64_t rows_at_once_ = 1;
  int64_t boxes_per_sample_ = 1;
};

/// What is wrong with the first bad one of the boxes [begin, end); empty where none is.
std::string first_complaint(const LabelBoxes& boxes, int64_t begin, int64_t end,
                            std::optional<SlowWork>* progress) {
  std::mutex mutex;
  std::string complaint;
  std::atomic<int64_t> first_bad{end};
  at::parallel_for(begin, end, 1, [&](int64_t from, int64_t to) {
    for (int64_t index = from; index < to && index < first_bad; ++index) {
      std::string words;
      try {
        boxes.check(index);
      } catch (const InvalidInput& error) {
        words = error.what();
      }
      const std::lock_guard lock(mutex);
      if (*progress) (*progress)->advance();
      if (words.empty() || index >= first_bad) continue;
      first_bad = index;
      complaint = words;
    }
  });
  return complaint;
}

}  // namespace

void check_all_labels(const TrainingJob& job, Transport& transport) {
  const std::string& which = job.config.label_check;
  for (const Subset* data : {job.train_set.get(), job.validation_set.get()}) {
    if (data == nullptr || data->real_targets() || data->labels_are_made_up() || which == "none")
      continue;
    const int64_t num_samples =
        which == "sample" ? std::min(kMostSampled, data->size()) : data->size();
    const LabelBoxes boxes(*data, num_samples);
    const int64_t begin = boxes.size() * transport.rank() / transport.size();
    const int64_t end = boxes.size() * (transport.rank() + 1) / transport.size();
    std::optional<SlowWork> progress;
    if (transport.rank() == 0)
      progress.emplace("checking labels", "parts of rank 0's share are read", end - begin);
    fail_together(transport, first_complaint(boxes, begin, end, &progress));
  }
}

}  // namespace tessera
