#pragma once
// What a data set holds and what training would see of it, without a network: sizes, types,
// numbers, classes, and the prepared patches.
//
// Example:
//   TrainConfig config;
//   config.data = "synthetic:samples=8,size=96x96";
//   config.augment = "flip+noise";
//   const DataReport report = report_data(config, {.most_samples = 16});

#include <memory>
#include <string>
#include <vector>

#include "tessera/augment/image_statistics.h"
#include "tessera/augment/intensities.h"
#include "tessera/config/train_config.h"

namespace tessera {

struct DataReportOptions {
  int64_t most_samples = 16;  // whose pixels are read, at equal distances; 0: all
  int64_t bins = 16;          // of the histograms
};

/// The numbers of some images.
struct NumberReport {
  std::vector<ImageMoments> channels;
  double low = 0, high = 0;        // of all channels
  std::vector<int64_t> histogram;  // of all channels, from low to high
};

struct DataReport {
  std::shared_ptr<const Dataset> data;        // as it is in the files
  std::shared_ptr<const Dataset> train;       // as a network would see it
  std::shared_ptr<const Dataset> validation;  // null: none
  Intensities intensities;
  std::vector<int64_t> samples_read;
  NumberReport before, after;         // of the files, and of the training patches
  std::vector<int64_t> class_counts;  // of labels in the files; empty for numbers
  int64_t ignored = 0;                // labels that do not count
};

/// Throws InvalidInput as training would.
DataReport report_data(const TrainConfig& config, const DataReportOptions& options);

}  // namespace tessera
