#pragma once
// How the numbers of images are brought to the range that a network is trained on. Statistics of
// the training set are found once, when a run begins; Intensities is what comes of it, and is kept
// with the run (run.json, checkpoints), so that predictions see the same.
//
// Example:
//   const Intensities intensities = fitted(parse_normalisation("z-score:over=set"), *train_set);
//   auto data = normalised(images, intensities);

#include <memory>
#include <string>
#include <vector>

#include "tessera/data/dataset.h"

namespace tessera {

/// --normalise as it is written.
struct Normalisation {
  enum class Kind {
    kNone,
    kScale,        // by the type of the files: 255 becomes 1
    kGiven,        // (x - mean) / deviation, of each channel
    kZScoreSet,    // the same, with those of the training set
    kZScoreImage,  // the same, with those of each image
    kPercentiles,  // those of each image become 0 and 1; what is beyond is cut off
    kWindow,       // low and high become 0 and 1; what is beyond is cut off
  };
  Kind kind = Kind::kNone;
  double low = 0, high = 0;
  std::vector<double> means = {}, deviations = {};
};

/// Empty text: none. Throws InvalidInput with the legal names, keys and values.
Normalisation parse_normalisation(const std::string& text);

struct Intensities {
  enum class Kind { kNone, kFixed, kZScoreImage, kPercentiles, kWindow };
  Kind kind = Kind::kNone;
  double low = 0, high = 0;                         // of percentiles, in percent, and of the window
  std::vector<double> means = {}, deviations = {};  // of each channel, where they are fixed

  bool operator==(const Intensities&) const = default;
};

/// Reads the whole training set where its statistics are wanted. Throws InvalidInput where given
/// numbers do not fit its channels, and where files of several types have no common scale.
Intensities fitted(const Normalisation& normalisation, const Dataset& training_set);

/// With all their digits.
std::string to_json(const Intensities& intensities);
/// Throws InvalidInput where the text is not one of to_json().
Intensities intensities_from_json(const std::string& text);

/// The data set with its images' numbers changed. Statistics of an image are found once.
std::shared_ptr<const Dataset> normalised(std::shared_ptr<const Dataset> source,
                                          const Intensities& intensities);

}  // namespace tessera
