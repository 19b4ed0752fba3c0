#pragma once
// A set of images with labels or real targets, read by boxes. A rank asks for its own box of a
// sample and nothing else, so that no rank ever holds a whole image; the same box has the same
// numbers whoever asks.
//
// Loads are const and thread-safe: a prefetch thread and the rank may read at the same time.
// Decorators (Subset) wrap a data set into another; BatchLoader makes batches of one.
//
// Example:
//   auto data = open_dataset("synthetic:samples=64", {1, 512, 512}, seed);
//   at::Tensor tile = at::empty({1, 256, 256});
//   data->load_image(3, {{0, 1}, {256, 512}, {0, 256}}, tile);

#include <ATen/ATen.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "tessera/geometry/box.h"
#include "tessera/images/image_frame.h"
#include "tessera/images/pixel_type.h"

namespace tessera {

/// The label of pixels that count neither in the loss nor in metrics; PyTorch's default.
constexpr int64_t kIgnoreLabel = -100;

/// Labels are 0 to kMostClasses - 1 at most.
constexpr int64_t kMostClasses = 65536;

/// Which sample, and in which epoch it is read: what is drawn at random (a crop, a flip) is another
/// in each epoch. A number alone is a sample of epoch 0.
struct Sample {
  Sample(int64_t index, int64_t epoch = 0) : index(index), epoch(epoch) {}  // NOLINT
  operator int64_t() const { return index; }                                // NOLINT

  int64_t index;
  int64_t epoch;
};

/// What a sample is for, where the data says so.
enum class SamplePart { kAny, kTrain, kValidation, kTest };

class Dataset {
 public:
  virtual ~Dataset() = default;

  /// Number of samples.
  virtual int64_t size() const = 0;
  /// Channels x spatial sizes of a sample where all samples are alike; empty where they are not,
  /// and such a set is cut into patches before a network sees it.
  virtual Shape image_shape() const = 0;
  /// The sizes of one sample.
  virtual Shape image_shape_of(int64_t /*sample*/) const { return image_shape(); }
  /// What messages and files of predictions call a sample: the stem of its file.
  virtual std::string name_of(int64_t sample) const { return std::to_string(sample); }
  /// What it is read from, the image's first: files, or folders with files of one image; none where
  /// it is made up.
  virtual std::vector<std::string> files_of(int64_t /*sample*/) const { return {}; }
  /// Where it lies in the world.
  virtual ImageFrame frame_of(int64_t /*sample*/) const { return {}; }
  /// The types that the images' numbers have in their files; none where they are made up.
  virtual std::set<PixelType> pixel_types() const { return {}; }
  /// Whether there is anything to read by load_target.
  virtual bool has_targets() const { return true; }
  /// The same of one sample: those for tests may have none in a set that has targets.
  virtual bool has_target(int64_t /*sample*/) const { return has_targets(); }
  virtual int64_t num_classes() const = 0;
  /// What the classes are called, from 0 on; empty where the data does not say.
  virtual std::vector<std::string> class_names() const { return {}; }
  /// Samples of kTest are never trained on.
  virtual SamplePart part_of(int64_t /*sample*/) const { return SamplePart::kAny; }
  /// How often the sample is drawn in training, relative to the others.
  virtual double weight_of(int64_t /*sample*/) const { return 1; }
  /// Whether each pixel has a label, or each sample one.
  virtual bool per_pixel() const = 0;
  /// Whether labels need no check: they are made up, and not read from anywhere.
  virtual bool labels_are_made_up() const { return false; }
  /// Whether targets are numbers to be met (regression) instead of labels.
  virtual bool real_targets() const { return false; }

  /// Writes a box (channels x spatial, inside the image) into `target`, a view of the box's shape
  /// of any real type, strides and device.
  virtual void load_image(Sample sample, const Box& box, at::Tensor target) const = 0;
  /// Writes the targets of a box (inside target_shape()) into `target`, a view of the box's shape:
  /// int64 labels in [0, num_classes) or kIgnoreLabel, or numbers of any real type.
  virtual void load_target(Sample sample, const Box& box, at::Tensor target) const = 0;

  /// What a load_target box may cover, where all samples are alike. For labels, the spatial sizes
  /// where each pixel has one, else no axes.
  virtual Shape target_shape() const {
    const Shape image = image_shape();
    return per_pixel() && !image.empty() ? Shape(image.begin() + 1, image.end()) : Shape();
  }
  /// The same of one sample.
  virtual Shape target_shape_of(int64_t /*sample*/) const { return target_shape(); }
};

}  // namespace tessera
