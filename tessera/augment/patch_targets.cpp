#include "tessera/augment/patch_targets.h"

#include "tessera/augment/image_reader.h"
#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {

PatchesOf::PatchesOf(std::shared_ptr<const Dataset> source, const Shape& size)
    : DatasetDecorator(std::move(source)), size_(size) {
  if (this->source().size() == 0) throw_error<InvalidInput>("[--crop] the data set has no sample");
  const Shape image = this->source().image_shape_of(0);
  image_shape_ = size;
  image_shape_.insert(image_shape_.begin(), image.at(0));
  if (this->source().has_targets()) {
    target_shape_ = this->source().target_shape_of(0);
    targets_have_pixels_ = tessera::targets_have_pixels(this->source(), 0);
  }
  const bool alike = !this->source().image_shape().empty();
  for (int64_t sample = 0; sample < (alike ? 1 : this->source().size()); ++sample)
    check_sample(sample);
  if (targets_have_pixels_) {
    const int64_t channels = this->source().real_targets() ? target_shape_[0] : 0;
    target_shape_ = size;
    if (channels > 0) target_shape_.insert(target_shape_.begin(), channels);
  }
}

void PatchesOf::check_sample(int64_t sample) const {
  const Shape image = source().image_shape_of(sample);
  if (image.size() != size_.size() + 1)
    throw_error<InvalidInput>(
        "[--crop] {} has {}, sample {} is {} (channels x space); give one "
        "size for each axis of space",
        to_string(size_), counted(std::ssize(size_), "size"), source().name_of(sample),
        to_string(image));
  if (image[0] != image_shape_[0])
    throw_error<InvalidInput>(
        "[--data] sample {} has {}, the first one has {}; give images that are alike in this",
        source().name_of(sample), counted(image[0], "channel"), image_shape_[0]);
  if (!targets_have_pixels_) return;
  const Shape target = source().target_shape_of(sample);
  const auto leading = static_cast<std::ptrdiff_t>(source().real_targets() ? 1 : 0);
  if (Shape(target.begin() + leading, target.end()) != Shape(image.begin() + 1, image.end()))
    throw_error<InvalidInput>(
        "[--crop] the target of sample {} is {}, its image {} (channels x space); patches need "
        "targets of the images' sizes",
        source().name_of(sample), to_string(target), to_string(image));
}

}  // namespace tessera
