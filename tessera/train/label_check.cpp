#include "tessera/train/label_check.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>

#include "tessera/base/error.h"
#include "tessera/base/slow_work.h"
#include "tessera/comm/together.h"
#include "tessera/data/label_strips.h"

namespace tessera {
namespace {

constexpr int64_t kMostSampled = 100;  // of each set

/// Throws InvalidInput for a label that is not legal.
void check_strip(const Dataset& data, const LabelStrip& strip) {
  const int64_t* values = strip.labels.data_ptr<int64_t>();
  const int64_t classes = data.num_classes();
  for (int64_t i = 0; i < strip.labels.numel(); ++i)
    if ((values[i] < 0 || values[i] >= classes) && values[i] != kIgnoreLabel)
      throw_error<InvalidInput>(
          "[--data] label {} in sample {} at element {} of {}; legal: 0 to {}, and {} to ignore a "
          "pixel",
          values[i], data.name_of(strip.sample), i, to_string(strip.box), classes - 1,
          kIgnoreLabel);
}

/// What is wrong with the first bad one of the strips [begin, end); empty where none is.
std::string first_complaint(const Dataset& data, const LabelStrips& strips, int64_t begin,
                            int64_t end, std::optional<SlowWork>* progress) {
  std::mutex mutex;
  std::string complaint;
  std::atomic<int64_t> first_bad{end};
  at::parallel_for(begin, end, 1, [&](int64_t from, int64_t to) {
    for (int64_t index = from; index < to && index < first_bad; ++index) {
      std::string words;
      try {
        check_strip(data, strips.load(index));
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
  std::vector<const Dataset*> read{job.images.train.get(), job.images.validation.get()};
  for (int domain : job.validated_targets())
    read.push_back(job.targets[domain - 1].validation.samples.get());
  for (const Dataset* data : read) {
    if (data == nullptr || data->real_targets() || data->labels_are_made_up() || which == "none")
      continue;
    const int64_t num_samples =
        which == "sample" ? std::min(kMostSampled, data->size()) : data->size();
    const LabelStrips strips(*data, num_samples);
    const int64_t begin = strips.size() * transport.rank() / transport.size();
    const int64_t end = strips.size() * (transport.rank() + 1) / transport.size();
    std::optional<SlowWork> progress;
    if (transport.rank() == 0)
      progress.emplace("checking labels", "parts of rank 0's share are read", end - begin);
    fail_together(transport, first_complaint(*data, strips, begin, end, &progress));
  }
}

}  // namespace tessera
