#include "tessera/job/data_report.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/data/label_strips.h"
#include "tessera/data/open.h"
#include "tessera/data/subset.h"
#include "tessera/train/training_job.h"

namespace tessera {
namespace {

/// Made-up images have the size that is asked for, and nobody asks here.
const Shape kMadeUp{1, 256, 256};

std::shared_ptr<const Dataset> open_any(const TrainConfig& config) {
  if (config.data.empty())
    throw_error<InvalidInput>(
        "[SPEC] there is nothing to look at; write folder:PATH, say, or "
        "synthetic:samples=8,size=128x128");
  const Shape shape = config.data.starts_with("synthetic") ? kMadeUp : Shape();
  return open_dataset(config.data, shape, config.seed, 0,
                      config.channels_last ? ChannelAxis::kLast : ChannelAxis::kFirst);
}

/// So many samples at equal distances.
std::vector<int64_t> some_samples(const Dataset& data, int64_t most) {
  const int64_t count = most == 0 ? data.size() : std::min(most, data.size());
  std::vector<int64_t> samples;
  for (int64_t i = 0; i < count; ++i) samples.push_back(i * data.size() / count);
  return samples;
}

NumberReport numbers_of(const Dataset& data, const std::vector<int64_t>& samples, int64_t bins) {
  NumberReport report;
  for (int64_t sample : samples) {
    const std::vector<ImageMoments> found = image_moments(data, sample);
    report.channels.resize(std::max(report.channels.size(), found.size()));
    for (size_t i = 0; i < found.size(); ++i) report.channels[i].add(found[i]);
  }
  ImageMoments all;
  for (const ImageMoments& channel : report.channels) all.add(channel);
  report.low = all.low;
  report.high = all.high;
  report.histogram.assign(bins, 0);
  const std::vector<std::pair<double, double>> ranges(report.channels.size(),
                                                      {report.low, report.high});
  for (int64_t sample : samples)
    for (const std::vector<int64_t>& counts : histograms(data, sample, ranges, bins))
      std::ranges::transform(report.histogram, counts, report.histogram.begin(), std::plus<>());
  return report;
}

void count_classes(const Dataset& data, DataReport* report) {
  if (!data.has_targets() || data.real_targets()) return;
  report->class_counts.assign(data.num_classes(), 0);
  for (int64_t sample : report->samples_read)
    for_each_label_strip(data, sample, [&](const LabelStrip& strip) {
      const int64_t* labels = strip.labels.data_ptr<int64_t>();
      for (int64_t i = 0; i < strip.labels.numel(); ++i)
        if (labels[i] >= 0 && labels[i] < data.num_classes())
          ++report->class_counts[labels[i]];
        else
          ++report->ignored;
    });
}

}  // namespace

DataReport report_data(const TrainConfig& config, const DataReportOptions& options) {
  DataReport report;
  report.data = open_any(config);
  TrainConfig splitting = config;
  if (report.data->size() < 2) splitting.validation_fraction = 0;  // one sample is there to be seen
  const DatasetSplit split = split_for_training(splitting, report.data);
  const PreparedData made = prepared(split.train, split.validation, preparation_of(config, {}));
  report.train = made.train;
  report.validation = made.validation;
  report.intensities = made.intensities;
  report.samples_read = some_samples(*report.data, options.most_samples);
  report.before = numbers_of(*report.data, report.samples_read, options.bins);
  report.after =
      numbers_of(*report.train, some_samples(*report.train, options.most_samples), options.bins);
  count_classes(*report.data, &report);
  return report;
}

}  // namespace tessera
