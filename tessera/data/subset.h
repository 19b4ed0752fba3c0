#pragma once
// Some samples of another data set, by a list of their numbers. What is trained and what is
// validated on are two of these.
//
// Example:
//   auto [train, validation] = split_dataset(data, 0.2, seed);

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/data/dataset.h"

namespace tessera {

class Subset : public Dataset {
 public:
  /// Sample i of this is sample `samples[i]` of `source`. Throws InvalidInput for a number outside
  /// the source.
  Subset(std::shared_ptr<const Dataset> source, std::vector<int64_t> samples);

  int64_t size() const override { return static_cast<int64_t>(samples_.size()); }
  Shape image_shape() const override { return image_shape_; }
  int64_t num_classes() const override { return source_->num_classes(); }
  bool per_pixel() const override { return source_->per_pixel(); }
  bool labels_are_made_up() const override { return source_->labels_are_made_up(); }
  bool real_targets() const override { return source_->real_targets(); }
  Shape target_shape() const override { return target_shape_; }
  std::vector<std::string> class_names() const override { return source_->class_names(); }
  bool has_targets() const override { return source_->has_targets(); }
  bool has_target(int64_t sample) const override { return source_->has_target(original(sample)); }
  std::set<PixelType> pixel_types() const override { return source_->pixel_types(); }
  Shape image_shape_of(int64_t sample) const override {
    return source_->image_shape_of(original(sample));
  }
  Shape target_shape_of(int64_t sample) const override {
    return source_->target_shape_of(original(sample));
  }
  std::string name_of(int64_t sample) const override { return source_->name_of(original(sample)); }
  std::vector<std::string> files_of(int64_t sample) const override {
    return source_->files_of(original(sample));
  }
  ImageFrame frame_of(int64_t sample) const override { return source_->frame_of(original(sample)); }
  SamplePart part_of(int64_t sample) const override { return source_->part_of(original(sample)); }
  double weight_of(int64_t sample) const override { return source_->weight_of(original(sample)); }
  void load_image(Sample sample, const Box& box, at::Tensor target) const override;
  void load_target(Sample sample, const Box& box, at::Tensor target) const override;

  const std::vector<int64_t>& samples() const { return samples_; }

 private:
  int64_t original(int64_t sample) const { return samples_.at(static_cast<size_t>(sample)); }

  std::shared_ptr<const Dataset> source_;
  std::vector<int64_t> samples_;
  // Where the source has samples of several sizes, those of this may all be alike.
  Shape image_shape_;
  Shape target_shape_;
};

std::vector<int64_t> samples_with_targets(const Dataset& source);

/// One of `count` parts that take turns at validation, from 1 on.
struct Fold {
  int64_t index = 1;
  int64_t count = 5;
};

/// "2/5"; an empty text is none. Throws InvalidInput with [--fold].
std::optional<Fold> parse_fold(const std::string& text);

struct DatasetSplit {
  std::shared_ptr<Subset> train;
  std::shared_ptr<Subset> validation;  // null: none
};

/// The samples that the data set itself has for validation. Where it has none: those of the fold,
/// or else `fraction` of all (rounded, at least one; 0: none); which ones is a function of the seed
/// alone. All others are trained on, but for those of SamplePart::kTest, which are in neither.
/// Throws InvalidInput unless 0 <= fraction < 1 and both parts have a sample, and for a fold of a
/// data set that has its own validation part.
DatasetSplit split_dataset(std::shared_ptr<const Dataset> source, double fraction, uint64_t seed,
                           std::optional<Fold> fold = {});

}  // namespace tessera
