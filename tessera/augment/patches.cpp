#include "tessera/augment/patches.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tessera/augment/class_positions.h"
#include "tessera/augment/patch_draw.h"
#include "tessera/augment/patch_targets.h"
#include "tessera/augment/per_sample.h"
#include "tessera/base/counts.h"
#include "tessera/base/error.h"
#include "tessera/base/key_values.h"

namespace tessera {
namespace {

class RandomPatches : public PatchesOf {
 public:
  RandomPatches(std::shared_ptr<const Dataset> source, const PatchOptions& options);

  int64_t size() const override { return source().size() * options_.per_image; }
  void load_image(Sample sample, const Box& box, at::Tensor target) const override;
  void load_target(Sample sample, const Box& box, at::Tensor target) const override;

 private:
  int64_t image_of(int64_t sample) const override { return sample / options_.per_image; }
  Sample source_sample(Sample sample) const { return {image_of(sample), sample.epoch}; }
  PatchDraw draw(Sample sample) const;
  std::vector<int64_t> draw_origin(const RandomKey& key, int64_t image, const Shape& spatial,
                                   const Shape& extents) const;
  std::optional<Shape> draw_centre(const RandomKey& key, int64_t image) const;

  const PatchOptions options_;
  const RandomKey key_;
  mutable PerSample<ClassPositions> classes_;
};

RandomPatches::RandomPatches(std::shared_ptr<const Dataset> source, const PatchOptions& options)
    : PatchesOf(std::move(source), options.size),
      options_(options),
      key_(RandomKey(options.seed).with("patches")) {
  check_axes(options.augmentation, static_cast<int>(options.size.size()));
  const bool by_labels = options.centres.kind != CropCentres::Kind::kUniform;
  if (by_labels && (!targets_have_pixels() || this->source().real_targets()))
    throw_error<InvalidInput>(
        "[--crop-centres] classes are found by labels per pixel, which the data does not have; use "
        "uniform");
  if (product_of({this->source().size(), options.per_image}) > kMostCounted)
    throw_error<InvalidInput>("[--patches-per-image] {} of each image are too many; use at most {}",
                              options.per_image, kMostCounted / this->source().size());
}

/// In the middle where the source is smaller than the patch.
std::vector<int64_t> RandomPatches::draw_origin(const RandomKey& key, int64_t image,
                                                const Shape& spatial, const Shape& extents) const {
  const std::optional<Shape> centre = draw_centre(key, image);
  std::vector<int64_t> origin;
  for (size_t axis = 0; axis < spatial.size(); ++axis) {
    const int64_t free = spatial[axis] - extents[axis];
    if (free <= 0)
      origin.push_back(-(-free / 2));
    else if (centre)
      origin.push_back(std::clamp<int64_t>((*centre)[axis] - extents[axis] / 2, 0, free));
    else
      origin.push_back(
          static_cast<int64_t>(key.with("origin").bits(axis) % static_cast<uint64_t>(free + 1)));
  }
  return origin;
}

std::optional<Shape> RandomPatches::draw_centre(const RandomKey& key, int64_t image) const {
  const CropCentres& centres = options_.centres;
  if (centres.kind == CropCentres::Kind::kUniform ||
      key.with("by labels").uniform(0) >= centres.share)
    return std::nullopt;
  const ClassPositions& classes = classes_.get(image, [&] {
    return find_classes(source(), image, key_.with("classes").with(static_cast<uint64_t>(image)));
  });
  const RandomKey own = key.with("centre");
  return centres.kind == CropCentres::Kind::kForeground ? classes.of_foreground(own)
                                                        : classes.of_any_class(own);
}

PatchDraw RandomPatches::draw(Sample sample) const {
  const RandomKey key =
      key_.with(static_cast<uint64_t>(sample.index)).with(static_cast<uint64_t>(sample.epoch));
  const int64_t image = image_of(sample);
  const Shape shape = source().image_shape_of(image);
  const Shape spatial(shape.begin() + 1, shape.end());
  std::vector<double> spacing = source().frame_of(image).spacing;
  const auto is_size = [](double each) { return each > 0 && std::isfinite(each); };
  if (spacing.size() != spatial.size() || !std::ranges::all_of(spacing, is_size)) spacing.clear();
  PatchDraw drawn(key, options_.augmentation, patch(), spatial, spacing);
  drawn.place(draw_origin(key, image, spatial, drawn.extents()));
  return drawn;
}

void RandomPatches::load_image(Sample sample, const Box& box, at::Tensor target) const {
  const PatchDraw drawn = draw(sample);
  const ImageReader reader = image_reader(source(), source_sample(sample));
  if (drawn.copies())
    copy_by_axes(reader, drawn.axes(), box, options_.fill, target);
  else
    interpolate(reader, drawn.map(), box, {Outside::kFill, options_.fill}, target);
}

void RandomPatches::load_target(Sample sample, const Box& box, at::Tensor target) const {
  if (!targets_have_pixels()) return source().load_target(source_sample(sample), box, target);
  const PatchDraw drawn = draw(sample);
  const ImageReader reader = target_reader(source(), source_sample(sample));
  const bool labels = !source().real_targets();
  if (drawn.copies())
    copy_by_axes(reader, drawn.axes(), box, labels ? static_cast<double>(kIgnoreLabel) : 0, target);
  else if (labels)
    nearest(reader, drawn.map(), box, Outside::kFill, target);
  else
    interpolate(reader, drawn.map(), box, {}, target);
}

}  // namespace

CropCentres parse_crop_centres(const std::string& text) {
  const size_t colon = std::min(text.find(':'), text.size());
  const std::string name = text.substr(0, colon);
  const std::string rest = colon < text.size() ? text.substr(colon + 1) : "";
  const KeyValues kinds("--crop-centres", "kind=" + name, {{"kind"}});
  kinds.choice("kind", {"uniform", "foreground", "classes"});
  if (name == "uniform") {
    KeyValues("--crop-centres uniform", rest, {});
    return {};
  }
  const KeyValues keys("--crop-centres " + name, rest, {{"share", "1", "part of the patches"}});
  return {name == "foreground" ? CropCentres::Kind::kForeground : CropCentres::Kind::kClasses,
          keys.real("share", 0, 1)};
}

std::shared_ptr<const Dataset> random_patches(std::shared_ptr<const Dataset> source,
                                              const PatchOptions& options) {
  return std::make_shared<RandomPatches>(std::move(source), options);
}

}  // namespace tessera
