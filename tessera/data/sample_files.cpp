#include "tessera/data/sample_files.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {
namespace {

[[noreturn]] void refuse_changed(const ArrayFile& file) {
  throw_error<InvalidInput>(
      "[data] {}: it has another size than before, {}; leave the files alone while they are read",
      file.path(), to_string(file.shape()));
}

}  // namespace

SampleFiles::SampleFiles(SetForm form, const FileOptions& options, const DataWish& wish,
                         bool targets_are_labels)
    : form_(form),
      options_(options),
      wish_(wish),
      targets_are_labels_(targets_are_labels),
      images_(options.images),
      targets_(options.masks) {}

ImageWish SampleFiles::whole_wish() const {
  return {.shape = wish_.image_shape,
          .channels = wish_.channels,
          .pages = options_.pages,
          .many_samples = is_pair()};
}

ImageWish SampleFiles::image_wish(const ListedSample& entry) const {
  ImageWish wish = whole_wish();
  if (entry.images.size() > 1 && !wish.shape.empty()) wish.shape[0] = 0;
  if (!wish.shape.empty() || entry.target.empty()) return wish;
  // Numbers have channels, too, and do not tell whether the image has them.
  if (const auto target = targets_.get(entry.target); !are_numbers(*target))
    wish.target_sizes = target->shape();
  return wish;
}

TargetWish SampleFiles::target_wish(const SampleHeader& header) const {
  return {.num_spatial = static_cast<int>(header.image.size()) - 1,
          .are_numbers = header.numbers,
          .channels = wish_.channels,
          .many_samples = is_pair()};
}

/// The channels of all files of an image together; they have the same space.
void SampleFiles::read_image_header(const ListedSample& entry, SampleHeader* header) const {
  header->wish = image_wish(entry);
  Shape& image = header->image;
  for (const std::string& path : entry.images) {
    const auto file = images_.get(path);
    const FileAxes axes = image_axes(*file, header->wish);
    const Shape part = sample_shape(axes, file->shape());
    header->samples = samples_in(axes, file->shape());
    header->types.insert(file->type());
    if (image.empty()) {
      image = part;
      header->frame = file->info().frame;
    } else if (!std::equal(part.begin() + 1, part.end(), image.begin() + 1, image.end())) {
      throw_error<InvalidInput>(
          "[data] {}: {} and {} are channels of one image; give them the same size, {}", path,
          to_string(part), to_string(image), entry.images.front());
    } else {
      image[0] += part[0];
    }
  }
}

SampleHeader SampleFiles::header_of(const ListedSample& entry) const {
  SampleHeader header;
  read_image_header(entry, &header);
  const Shape& wanted = wish_.image_shape;
  if (!wanted.empty() && header.image[0] != wanted[0])
    throw_error<InvalidInput>("[data] {}: {} of {} have {}, the network takes {}",
                              entry.images.front(), counted(std::ssize(entry.images), "file"),
                              entry.name, counted(header.image[0], "channel"), wanted[0]);
  if (!wanted.empty() && header.image != wanted && wish_.sizes == ImageSizes::kAsWanted)
    refuse_image(*images_.get(entry.images.front()), whole_wish(), header.image);
  if (!entry.target.empty()) read_target_header(entry, &header);
  return header;
}

bool SampleFiles::are_numbers(const ArrayFile& targets) const {
  if (options_.targets != FileTargets::kByType) return options_.targets == FileTargets::kNumbers;
  return is_real(targets.type()) && !targets_are_labels_;
}

void SampleFiles::read_target_header(const ListedSample& entry, SampleHeader* header) const {
  const auto file = targets_.get(entry.target);
  header->numbers = are_numbers(*file);
  // A single number is not a target.
  if (file->shape().empty()) refuse_targets(*file, entry.images.front(), header->samples);
  const FileAxes axes = target_axes(*file, target_wish(*header));
  header->target = sample_shape(axes, file->shape());
  if (samples_in(axes, file->shape()) != header->samples)
    refuse_targets(*file, entry.images.front(), header->samples);
  check_mask_size(entry, *header);
}

void SampleFiles::refuse_targets(const ArrayFile& targets, const std::string& image,
                                 int64_t samples) const {
  throw_error<InvalidInput>(
      "[data] {}: the targets' shape {} does not fit {} in {}; give samples x spatial (labels per "
      "pixel), samples (one per image), or samples x channels x spatial (numbers)",
      targets.path(), to_string(targets.shape()), counted(samples, "image"), image);
}

/// Whether the targets of a pair, and numbers, fit the network's outputs, which need not have the
/// size of the images, is seen where both are known.
void SampleFiles::check_mask_size(const ListedSample& entry, const SampleHeader& header) const {
  if (is_pair() || header.numbers) return;
  const Shape space(header.image.begin() + 1, header.image.end());
  if (header.target != space)
    throw_error<InvalidInput>(
        "[data] {}: the mask is {}, its image {} is {}; give each pixel of the image a label",
        entry.target, to_string(header.target), entry.images.front(), to_string(space));
}

void SampleFiles::read_image(const ListedSample& entry, const SampleHeader& header, int64_t index,
                             const Box& box, at::Tensor target) const {
  int64_t first = 0;  // channel of this file
  for (const std::string& path : entry.images) {
    const ArrayReader file(images_.get(path));
    const FileAxes axes = image_axes(file.file(), header.wish);
    Shape shape = sample_shape(axes, file.shape());
    const int64_t channels = shape[0];
    shape[0] = header.image[0];
    if (shape != header.image || samples_in(axes, file.shape()) != header.samples)
      refuse_changed(file.file());
    Box part = box;
    part[0] = intersect(box[0], Range{first, first + channels}).shifted(-first);
    if (!part.empty())
      read_sample(file, axes, index, part,
                  target.narrow(0, part[0].begin + first - box[0].begin, part[0].size()));
    first += channels;
  }
  if (first != header.image[0]) refuse_changed(*images_.get(entry.images.back()));
}

void SampleFiles::read_target(const ListedSample& entry, const SampleHeader& header, int64_t index,
                              const Box& box, at::Tensor target) const {
  const ArrayReader file(targets_.get(entry.target));
  const FileAxes axes = target_axes(file.file(), target_wish(header));
  if (sample_shape(axes, file.shape()) != header.target ||
      samples_in(axes, file.shape()) != header.samples)
    refuse_changed(file.file());
  if (target.scalar_type() != at::kLong || !is_real(file.type()))
    return read_sample(file, axes, index, box, target);
  at::Tensor real = at::empty(box.shape(), at::kDouble);
  read_sample(file, axes, index, box, real);
  if (!real.equal(real.round()) || (real.abs() > 1e15).any().item<bool>())
    throw_error<InvalidInput>(
        "[data] {}: targets=labels, and {} has numbers that are not whole; use "
        "targets=numbers with a loss such as mse",
        file.path(), entry.name);
  target.copy_(real);
}

}  // namespace tessera
