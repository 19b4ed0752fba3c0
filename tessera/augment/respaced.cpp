#include <algorithm>
#include <cmath>

#include "tessera/augment/decorator.h"
#include "tessera/augment/interpolation.h"
#include "tessera/augment/layout_changes.h"
#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {
namespace {

constexpr double kMostAlongAxis = 1 << 30;  // along one axis

/// Whether a pixel can be so large, in millimetres.
bool is_size(double spacing) { return spacing > 1e-9 && spacing < 1e9; }

class Respaced : public DatasetDecorator {
 public:
  Respaced(std::shared_ptr<const Dataset> source, const std::vector<double>& spacing);

  Shape image_shape() const override { return image_shape_; }
  Shape image_shape_of(int64_t sample) const override {
    return resized(source().image_shape_of(sample), sample);
  }
  Shape target_shape() const override { return target_shape_; }
  Shape target_shape_of(int64_t sample) const override;
  ImageFrame frame_of(int64_t sample) const override;
  void load_image(Sample sample, const Box& box, at::Tensor target) const override;
  void load_target(Sample sample, const Box& box, at::Tensor target) const override;

 private:
  int num_axes() const { return static_cast<int>(spacing_.size()); }
  std::vector<double> ratios(int64_t sample) const {
    return old_per_new_pixel(source().frame_of(sample), spacing_);
  }
  Shape resized(Shape shape, int64_t sample) const;
  PatchMap map(int64_t sample) const;

  const std::vector<double> spacing_;
  Shape image_shape_, target_shape_;
};

Respaced::Respaced(std::shared_ptr<const Dataset> source, const std::vector<double>& spacing)
    : DatasetDecorator(std::move(source)), spacing_(spacing) {
  for (int64_t sample = 0; sample < size(); ++sample) {
    const std::vector<double> held = this->source().frame_of(sample).spacing;
    const Shape shape = this->source().image_shape_of(sample);
    if (shape.size() != spacing.size() + 1)
      throw_error<InvalidInput>(
          "[--spacing] {} for sample {}, which is {} (channels x space); give one for each axis",
          counted(std::ssize(spacing), "number"), this->source().name_of(sample), to_string(shape));
    if (held.size() != spacing.size() || !std::ranges::all_of(held, is_size))
      throw_error<InvalidInput>(
          "[--spacing] sample {} does not say its own spacing; leave --spacing out, or give files "
          "that say it, such as NIfTI",
          this->source().name_of(sample));
    // Empty where sizes differ.
    const Shape image = image_shape_of(sample), target = target_shape_of(sample);
    if (sample == 0) image_shape_ = image, target_shape_ = target;
    if (image != image_shape_) image_shape_.clear();
    if (target != target_shape_) target_shape_.clear();
  }
}

Shape Respaced::resized(Shape shape, int64_t sample) const {
  const std::vector<double> ratio = ratios(sample);
  const size_t leading = shape.size() - spacing_.size();
  for (size_t axis = 0; axis < spacing_.size(); ++axis) {
    int64_t& size = shape[axis + leading];
    const double wanted = static_cast<double>(size) / ratio[axis];
    if (wanted > kMostAlongAxis)
      throw_error<InvalidInput>(
          "[--spacing] sample {} would have {:.3g} pixels along an axis; give a larger spacing",
          source().name_of(sample), wanted);
    size = std::max<int64_t>(1, std::llround(wanted));
  }
  return shape;
}

Shape Respaced::target_shape_of(int64_t sample) const {
  const Shape shape = source().target_shape_of(sample);
  return targets_have_pixels(source(), sample) ? resized(shape, sample) : shape;
}

ImageFrame Respaced::frame_of(int64_t sample) const {
  ImageFrame frame = source().frame_of(sample);
  frame.spacing = spacing_;
  frame.geotransform.reset();
  if (!frame.affine) return frame;
  const std::vector<double> ratio = ratios(sample);
  // Column 0 is x, the last axis. The first new centre lies half a new pixel from the edge.
  for (int row = 0; row < 3; ++row) {
    double* const line = frame.affine->data() + 4 * row;
    for (int axis = 0; axis < num_axes(); ++axis) {
      double& step = line[num_axes() - 1 - axis];
      line[3] += step * (ratio[axis] - 1) / 2;
      step *= ratio[axis];
    }
  }
  return frame;
}

PatchMap Respaced::map(int64_t sample) const {
  const std::vector<double> ratio = ratios(sample);
  return [ratio](const Box&) {
    return [ratio](const Position& position, int64_t length, Coordinates* row) {
      const int axes = static_cast<int>(ratio.size());
      for (int axis = 0; axis < axes; ++axis) {
        std::vector<double>& along = (*row)[axis];
        along.resize(static_cast<size_t>(length));
        for (int64_t i = 0; i < length; ++i) {
          const int64_t at = axis + 1 == axes ? position[axis] + i : position[axis];
          along[i] = (static_cast<double>(at) + 0.5) * ratio[axis] - 0.5;
        }
      }
    };
  };
}

void Respaced::load_image(Sample sample, const Box& box, at::Tensor target) const {
  interpolate(image_reader(source(), sample), map(sample), box, {Outside::kNearest}, target);
}

void Respaced::load_target(Sample sample, const Box& box, at::Tensor target) const {
  if (!targets_have_pixels(source(), sample)) return source().load_target(sample, box, target);
  const ImageReader reader = target_reader(source(), sample);
  if (source().real_targets())
    interpolate(reader, map(sample), box, {Outside::kNearest}, target);
  else
    nearest(reader, map(sample), box, Outside::kNearest, target);
}

}  // namespace

std::vector<double> old_per_new_pixel(const ImageFrame& frame, const std::vector<double>& spacing) {
  std::vector<double> ratios = spacing;
  for (size_t axis = 0; axis < spacing.size(); ++axis) ratios[axis] /= frame.spacing[axis];
  return ratios;
}

std::vector<double> parse_spacing(const std::string& text) {
  std::vector<double> spacing;
  for (const std::string& part : split_text(text, 'x')) {
    const std::optional<double> number = read_number<double>(part);
    if (!number || !is_size(*number))
      throw_error<InvalidInput>(
          "[--spacing] '{}' is not a size of pixels; write millimetres above 0 along each axis, as "
          "in 1x1x2.5",
          text);
    spacing.push_back(*number);
  }
  return spacing;
}

std::shared_ptr<const Dataset> respaced(std::shared_ptr<const Dataset> source,
                                        const std::vector<double>& spacing) {
  return std::make_shared<Respaced>(std::move(source), spacing);
}

}  // namespace tessera
