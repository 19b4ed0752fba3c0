#pragma once
// What patches of a data set have in common, however they are placed: their size, and what of the
// target belongs to them.

#include "tessera/augment/decorator.h"

namespace tessera {

class PatchesOf : public DatasetDecorator {
 public:
  /// Throws InvalidInput where patches of this size cannot be cut.
  PatchesOf(std::shared_ptr<const Dataset> source, const Shape& size);

  std::string name_of(int64_t sample) const override { return source().name_of(image_of(sample)); }
  SamplePart part_of(int64_t sample) const override { return source().part_of(image_of(sample)); }
  double weight_of(int64_t sample) const override { return source().weight_of(image_of(sample)); }
  std::vector<std::string> files_of(int64_t sample) const override {
    return source().files_of(image_of(sample));
  }
  bool has_target(int64_t sample) const override { return source().has_target(image_of(sample)); }
  ImageFrame frame_of(int64_t) const override { return {}; }
  Shape image_shape() const override { return image_shape_; }
  Shape image_shape_of(int64_t) const override { return image_shape_; }
  Shape target_shape() const override { return target_shape_; }
  Shape target_shape_of(int64_t) const override { return target_shape_; }

 protected:
  /// The sample of the source that a patch is cut from.
  virtual int64_t image_of(int64_t sample) const = 0;
  const Shape& patch() const { return size_; }
  /// Whether the target has the pixels of the image; else there is one for the whole of it.
  bool targets_have_pixels() const { return targets_have_pixels_; }

 private:
  void check_sample(int64_t sample) const;

  Shape size_, image_shape_, target_shape_;
  bool targets_have_pixels_ = false;
};

}  // namespace tessera
