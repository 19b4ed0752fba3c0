#include "tessera/data/file_images.h"

#include <algorithm>
#include <numeric>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {
namespace {

constexpr int kNone = FileAxes::kNone;

/// The axis with this letter; kNone where there is none.
int axis_called(const ArrayFile& file, char letter) {
  const size_t found = file.info().axes.find(letter);
  return found == std::string::npos ? kNone : static_cast<int>(found);
}

int64_t size_along(const ArrayFile& file, int axis) {
  return axis == kNone ? 1 : file.shape()[axis];
}

bool has_no_elements(const ArrayFile& file) {
  return std::ranges::any_of(file.shape(), [](int64_t size) { return size < 1; });
}

void check_sizes(const ArrayFile& file) {
  if (has_no_elements(file))
    throw_error<InvalidInput>("[data] {}: sizes are at least 1, got shape {}", file.path(),
                              to_string(file.shape()));
}

/// The axes Z, Y and X that there are; a depth of 1 does not count where two are wanted.
std::vector<int> space_axes(const ArrayFile& file, int wanted) {
  std::vector<int> space;
  for (char letter : {'Z', 'Y', 'X'}) {
    const int axis = axis_called(file, letter);
    const bool flat = letter == 'Z' && wanted == 2 && size_along(file, axis) == 1;
    if (axis != kNone && !flat) space.push_back(axis);
  }
  return space;
}

Pages meaning_of_pages(const ArrayFile& file, const ImageWish& wish, int64_t pages,
                       int64_t channels, int space) {
  const int wanted = static_cast<int>(wish.shape.size()) - 1;
  if (wanted == 3 && space == 2) return Pages::kDepth;
  if (channels == 1 && !wish.shape.empty() && wish.shape[0] == pages) return Pages::kChannels;
  if (wish.many_samples) return Pages::kSamples;
  if (channels == 1) return Pages::kChannels;
  throw_error<InvalidInput>(
      "[data] {}: an image has {} of {} channels each; say what pages are by pages=depth, or give "
      "each page a file of its own",
      file.path(), counted(pages, "page"), channels);
}

FileAxes named_image_axes(const ArrayFile& file, const ImageWish& wish) {
  check_sizes(file);
  FileAxes axes;
  const int pages = axis_called(file, 'P');
  int channels = axis_called(file, 'C');
  std::vector<int> space = space_axes(file, static_cast<int>(wish.shape.size()) - 1);
  if (size_along(file, pages) > 1) {
    Pages meaning = wish.pages;
    if (meaning == Pages::kAuto)
      meaning = meaning_of_pages(file, wish, file.shape()[pages], size_along(file, channels),
                                 static_cast<int>(space.size()));
    if (meaning == Pages::kChannels && size_along(file, channels) > 1)
      throw_error<InvalidInput>(
          "[data] {}: pages cannot be channels, because each of {} has {} of them; use pages=depth",
          file.path(), counted(file.shape()[pages], "page"), file.shape()[channels]);
    if (meaning == Pages::kSamples && !wish.many_samples)
      throw_error<InvalidInput>(
          "[data] {}: pages=samples is for a set of one file (files:IMAGES,TARGETS); here each "
          "file "
          "is a sample",
          file.path());
    if (meaning == Pages::kDepth && space.size() > 2)
      throw_error<InvalidInput>("[data] {}: pages=depth, and each page has a depth; leave it out",
                                file.path());
    if (meaning == Pages::kDepth) space.insert(space.begin(), pages);
    if (meaning == Pages::kChannels) channels = pages;
    if (meaning == Pages::kSamples) axes.samples = pages;
  }
  axes.order = space;
  axes.order.insert(axes.order.begin(), channels);
  return axes;
}

/// The axes from `first` on, those of one sample.
std::vector<int> axes_from(const ArrayFile& file, int first) {
  std::vector<int> axes(std::max<size_t>(file.shape().size(), first) - first);
  std::iota(axes.begin(), axes.end(), first);
  return axes;
}

/// With a wanted shape it is clear whether the file has a channel axis. Without, targets per pixel
/// tell, and after that images of three axes are taken to have one.
FileAxes unnamed_image_axes(const ArrayFile& file, const ImageWish& wish) {
  const int first = wish.many_samples ? 1 : 0;
  FileAxes axes{.samples = wish.many_samples ? 0 : kNone, .order = axes_from(file, first)};
  const size_t held = axes.order.size();
  if (held < 1 || held > 4 || has_no_elements(file))
    throw_error<InvalidInput>(
        "[data] {}: images are {}channels x 1 to 3 spatial sizes (one channel may be left out), "
        "all "
        "at least 1, got shape {}",
        file.path(), wish.many_samples ? "samples x " : "", to_string(file.shape()));
  bool has_channels = held == wish.shape.size();
  if (wish.shape.empty())
    has_channels = held > (wish.many_samples ? 1 : 2) && wish.target_sizes != file.shape();
  if (!has_channels)
    axes.order.insert(axes.order.begin(), kNone);
  else if (wish.channels == ChannelAxis::kLast)
    std::rotate(axes.order.rbegin(), axes.order.rbegin() + 1, axes.order.rend());
  return axes;
}

[[noreturn]] void refuse_coloured(const ArrayFile& file, int64_t channels) {
  throw_error<InvalidInput>(
      "[data] {}: a mask with {} (shape {}), where each pixel has one label; write the numbers of "
      "the classes as one channel, not their colours",
      file.path(), counted(channels, "channel"), to_string(file.shape()));
}

FileAxes named_target_axes(const ArrayFile& file, const TargetWish& wish) {
  FileAxes axes;
  const int pages = axis_called(file, 'P'), channels = axis_called(file, 'C');
  axes.order = space_axes(file, wish.num_spatial);
  if (size_along(file, pages) > 1) {
    if (wish.num_spatial == 3 && axes.order.size() == 2)
      axes.order.insert(axes.order.begin(), pages);
    else if (wish.many_samples)
      axes.samples = pages;
    else
      refuse_coloured(file, file.shape()[pages]);
  }
  if (wish.are_numbers)
    axes.order.insert(axes.order.begin(), channels);
  else if (size_along(file, channels) > 1)
    refuse_coloured(file, file.shape()[channels]);
  return axes;
}

FileAxes unnamed_target_axes(const ArrayFile& file, const TargetWish& wish) {
  FileAxes axes{.samples = wish.many_samples ? 0 : kNone,
                .order = axes_from(file, wish.many_samples ? 1 : 0)};
  std::vector<int>& order = axes.order;
  if (wish.are_numbers) {
    if (wish.channels == ChannelAxis::kLast && order.size() > 1)
      std::rotate(order.rbegin(), order.rbegin() + 1, order.rend());
    if (order.empty()) order.push_back(kNone);  // one number each leaves the channel out
    return axes;
  }
  // One axis too many is that of channels.
  if (static_cast<int>(order.size()) == wish.num_spatial + 1) {
    const int64_t front = file.shape()[order.front()], back = file.shape()[order.back()];
    if (front == 1)
      order.erase(order.begin());
    else if (back == 1)
      order.pop_back();
    else if (back == 3 || back == 4 || front == 3 || front == 4)
      refuse_coloured(file, back == 3 || back == 4 ? back : front);
  }
  return axes;
}

/// The sizes of one sample as they are in a file without names of its axes.
Shape sizes_in_file(const ArrayFile& file, const ImageWish& wish) {
  return {file.shape().begin() + (wish.many_samples ? 1 : 0), file.shape().end()};
}

/// The sizes of one sample with the channels moved to the other end than they are taken to be at.
Shape channels_moved(Shape sizes, ChannelAxis from) {
  if (from == ChannelAxis::kFirst)
    std::rotate(sizes.begin(), sizes.begin() + 1, sizes.end());
  else
    std::rotate(sizes.rbegin(), sizes.rbegin() + 1, sizes.rend());
  return sizes;
}

}  // namespace

FileAxes image_axes(const ArrayFile& file, const ImageWish& wish) {
  const FileAxes axes =
      file.info().axes.empty() ? unnamed_image_axes(file, wish) : named_image_axes(file, wish);
  if (wish.shape.empty()) return axes;
  const Shape image = sample_shape(axes, file.shape());
  const bool other_channels = wish.shape[0] != 0 && image[0] != wish.shape[0];
  if (image.size() != wish.shape.size() || other_channels) refuse_image(file, wish, image);
  return axes;
}

void refuse_image(const ArrayFile& file, const ImageWish& wish, const Shape& image) {
  if (!file.info().axes.empty())
    throw_error<InvalidInput>(
        "[data] {}: an image is {} (channels x spatial; the file's axes {} are {}), the network "
        "takes {}; give the file's sizes as --input",
        file.path(), to_string(image), file.info().axes, to_string(file.shape()),
        to_string(wish.shape));
  const bool last = wish.channels == ChannelAxis::kLast;
  const std::string samples = wish.many_samples ? "Nx" : "";
  const Shape held = sizes_in_file(file, wish);
  if (last && held == wish.shape)
    throw_error<InvalidInput>(
        "[data] {}: the file's shape is {}, which has the channels first; leave --channels-last "
        "out",
        file.path(), to_string(file.shape()));
  if (!last && channels_moved(held, ChannelAxis::kLast) == wish.shape)
    throw_error<InvalidInput>(
        "[data] {}: the file's shape is {}, which has the channels last, images of {} (channels x "
        "spatial) need {}{}; --channels-last takes the file as it is",
        file.path(), to_string(file.shape()), to_string(wish.shape), samples,
        to_string(wish.shape));
  const bool may_be_last =
      !last && held.size() == wish.shape.size() && held.back() == wish.shape[0];
  throw_error<InvalidInput>(
      "[data] {}: the file's shape is {}, images of {} (channels x spatial) need {}{}; give the "
      "file's sizes as --input{}",
      file.path(), to_string(file.shape()), to_string(wish.shape), samples,
      to_string(last ? channels_moved(wish.shape, ChannelAxis::kFirst) : wish.shape),
      may_be_last ? ", or --channels-last where it has its channels there" : "");
}

FileAxes target_axes(const ArrayFile& file, const TargetWish& wish) {
  check_sizes(file);
  return file.info().axes.empty() ? unnamed_target_axes(file, wish) : named_target_axes(file, wish);
}

}  // namespace tessera
