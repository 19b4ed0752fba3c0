#pragma once
// Small images in memory, of different sizes, with labels in blocks: what decorators of data sets
// are tried on.

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tessera/base/random.h"
#include "tessera/data/dataset.h"

namespace tessera {

class ExampleImages : public Dataset {
 public:
  struct Image {
    at::Tensor pixels;  // channels x space, doubles
    at::Tensor labels;  // space, int64
    ImageFrame frame = {};
  };
  explicit ExampleImages(std::vector<Image> images) : images_(std::move(images)) {}

  /// Random numbers, and labels 0 to 2 in blocks of 3 with some to be ignored.
  static Image random(const Shape& shape, uint64_t seed) {
    Image image{at::empty(shape, at::kDouble),
                at::empty(Shape(shape.begin() + 1, shape.end()), at::kLong)};
    const RandomKey key(seed);
    for (int64_t i = 0; i < image.pixels.numel(); ++i)
      image.pixels.data_ptr<double>()[i] = key.normal(static_cast<uint64_t>(i));
    for (int64_t i = 0; i < image.labels.numel(); ++i) {
      const auto draw =
          static_cast<int64_t>(key.with("label").bits(static_cast<uint64_t>(i / 3)) % 16);
      image.labels.data_ptr<int64_t>()[i] = draw == 15 ? kIgnoreLabel : draw % 3;
    }
    return image;
  }
  static std::shared_ptr<const ExampleImages> of(const std::vector<Shape>& shapes) {
    std::vector<Image> images;
    for (const Shape& shape : shapes) images.push_back(random(shape, images.size() + 1));
    return std::make_shared<ExampleImages>(images);
  }

  const Image& image(int64_t sample) const { return images_.at(static_cast<size_t>(sample)); }

  int64_t size() const override { return std::ssize(images_); }
  Shape image_shape() const override {
    for (const Image& each : images_)
      if (each.pixels.sizes() != images_[0].pixels.sizes()) return {};
    return images_[0].pixels.sizes().vec();
  }
  Shape image_shape_of(int64_t sample) const override { return image(sample).pixels.sizes().vec(); }
  Shape target_shape_of(int64_t sample) const override {
    return image(sample).labels.sizes().vec();
  }
  ImageFrame frame_of(int64_t sample) const override { return image(sample).frame; }
  int64_t num_classes() const override { return 3; }
  bool per_pixel() const override { return true; }
  void load_image(Sample sample, const Box& box, at::Tensor target) const override {
    copy(image(sample).pixels, box, target);
  }
  void load_target(Sample sample, const Box& box, at::Tensor target) const override {
    copy(image(sample).labels, box, target);
  }

 private:
  static void copy(at::Tensor from, const Box& box, at::Tensor target) {
    ASSERT_TRUE(Box::whole(from.sizes().vec()).contains(box)) << to_string(box);
    for (int axis = 0; axis < box.num_axes(); ++axis)
      from = from.narrow(axis, box[axis].begin, box[axis].size());
    target.copy_(from);
  }

  std::vector<Image> images_;
};

inline at::Tensor whole_image(const Dataset& data, Sample sample) {
  const Box box = Box::whole(data.image_shape_of(sample));
  at::Tensor image = at::full(box.shape(), NAN, at::kDouble);
  data.load_image(sample, box, image);
  return image;
}

inline at::Tensor whole_target(const Dataset& data, Sample sample) {
  const Box box = Box::whole(data.target_shape_of(sample));
  at::Tensor labels = at::full(box.shape(), -7, at::kLong);
  data.load_target(sample, box, labels);
  return labels;
}

/// A part of the box that is not empty, along all axes from `first` on.
inline Box random_part(const Box& box, int first, const RandomKey& key) {
  Box part = box;
  for (int axis = first; axis < box.num_axes(); ++axis) {
    const auto size = static_cast<uint64_t>(box[axis].size());
    const auto begin = static_cast<int64_t>(key.bits(static_cast<uint64_t>(2 * axis)) % size);
    const auto rest = static_cast<uint64_t>(box[axis].size() - begin);
    const auto length =
        static_cast<int64_t>(key.bits(static_cast<uint64_t>(2 * axis + 1)) % rest) + 1;
    part[axis] = {begin, begin + length};
  }
  return part;
}

inline at::Tensor part_of_whole(at::Tensor whole, const Box& box) {
  for (int axis = 0; axis < box.num_axes(); ++axis)
    whole = whole.narrow(axis, box[axis].begin, box[axis].size());
  return whole;
}

/// Whether any box of a sample has the bits of the same region of the whole, read into buffers with
/// margins, too.
inline void expect_boxes_equal_whole(const Dataset& data, Sample sample, int num_boxes) {
  const at::Tensor image = whole_image(data, sample), labels = whole_target(data, sample);
  EXPECT_FALSE(image.isnan().any().item<bool>());
  EXPECT_FALSE(labels.eq(-7).any().item<bool>());
  for (int number = 0; number < num_boxes; ++number) {
    const RandomKey key = RandomKey(99).with(static_cast<uint64_t>(number));
    const Box box = random_part(Box::whole(image.sizes().vec()), 0, key);
    at::Tensor part = at::empty(box.shape(), at::kDouble);
    data.load_image(sample, box, part);
    EXPECT_TRUE(part.equal(part_of_whole(image, box))) << to_string(box);
    const Box label_box = without_axis(box, 0);
    Shape wide = label_box.shape();
    wide.back() += 2;
    at::Tensor with_margins = at::empty(wide, at::kLong);
    at::Tensor label_part = with_margins.narrow(-1, 1, wide.back() - 2);
    data.load_target(sample, label_box, label_part);
    EXPECT_TRUE(label_part.equal(part_of_whole(labels, label_box))) << to_string(label_box);
  }
}

}  // namespace tessera
