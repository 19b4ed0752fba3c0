#pragma once
// Another data set with something changed: everything that a decorator does not override is the
// source's. Samples keep their numbers.
//
// Example:
//   class Brighter : public DatasetDecorator { void load_image(...) const override; };

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tessera/data/dataset.h"

namespace tessera {

class DatasetDecorator : public Dataset {
 public:
  explicit DatasetDecorator(std::shared_ptr<const Dataset> source) : source_(std::move(source)) {}

  int64_t size() const override { return source_->size(); }
  Shape image_shape() const override { return source_->image_shape(); }
  Shape image_shape_of(int64_t sample) const override { return source_->image_shape_of(sample); }
  std::string name_of(int64_t sample) const override { return source_->name_of(sample); }
  std::vector<std::string> files_of(int64_t sample) const override {
    return source_->files_of(sample);
  }
  ImageFrame frame_of(int64_t sample) const override { return source_->frame_of(sample); }
  std::set<PixelType> pixel_types() const override { return source_->pixel_types(); }
  bool has_targets() const override { return source_->has_targets(); }
  bool has_target(int64_t sample) const override { return source_->has_target(sample); }
  int64_t num_classes() const override { return source_->num_classes(); }
  std::vector<std::string> class_names() const override { return source_->class_names(); }
  SamplePart part_of(int64_t sample) const override { return source_->part_of(sample); }
  double weight_of(int64_t sample) const override { return source_->weight_of(sample); }
  bool per_pixel() const override { return source_->per_pixel(); }
  bool labels_are_made_up() const override { return source_->labels_are_made_up(); }
  bool real_targets() const override { return source_->real_targets(); }
  Shape target_shape() const override { return source_->target_shape(); }
  Shape target_shape_of(int64_t sample) const override { return source_->target_shape_of(sample); }
  void load_image(Sample sample, const Box& box, at::Tensor target) const override {
    source_->load_image(sample, box, target);
  }
  void load_target(Sample sample, const Box& box, at::Tensor target) const override {
    source_->load_target(sample, box, target);
  }

 protected:
  const Dataset& source() const { return *source_; }

 private:
  std::shared_ptr<const Dataset> source_;
};

}  // namespace tessera
