#include "tessera/data/npy_dataset.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "tessera/base/key_values.h"
#include "tessera/base/text.h"
#include "tessera/data/array_reader.h"
#include "tessera/data/box_rows.h"

namespace tessera {
namespace {

constexpr int64_t kMaxClasses = 65536;
constexpr int64_t kNoLabel = std::numeric_limits<int64_t>::min();

/// The sizes of a sample with the channels, which stand at the other end, moved there.
Shape channels_moved(Shape sizes, ChannelAxis to) {
  if (to == ChannelAxis::kFirst)
    std::rotate(sizes.rbegin(), sizes.rbegin() + 1, sizes.rend());
  else
    std::rotate(sizes.begin(), sizes.begin() + 1, sizes.end());
  return sizes;
}

/// Reads a box of one sample (channels x spatial) from a file that has the channels last.
void read_channels_last(const ArrayReader& file, int64_t sample, const Box& box,
                        at::Tensor target) {
  Box file_box{{sample, sample + 1}};
  for (int axis = 1; axis < box.num_axes(); ++axis) file_box.push_back(box[axis]);
  file_box.push_back(box[0]);
  file.read(file_box, target.movedim(0, -1));
}

/// A size of 0 is any.
bool is_of_shape(const Shape& shape, const Shape& wanted) {
  return std::ranges::equal(shape, wanted, [](int64_t size, int64_t wanted_size) {
    return wanted_size == 0 || size == wanted_size;
  });
}

class NpyDataset : public Dataset {
 public:
  NpyDataset(const std::string& images, const std::string& targets, const Shape& image_shape,
             ChannelAxis channels);

  void set_labels(int64_t num_classes, int64_t ignored);

  int64_t size() const override { return images_.shape()[0]; }
  Shape image_shape() const override { return image_shape_; }
  int64_t num_classes() const override { return num_classes_; }
  bool has_targets() const override { return targets_.has_value(); }
  bool per_pixel() const override { return has_targets() && targets_->shape().size() > 1; }
  bool real_targets() const override { return has_targets() && is_real(targets_->type()); }
  Shape target_shape() const override {
    if (!has_targets()) return {};
    const Shape sample(targets_->shape().begin() + 1, targets_->shape().end());
    return targets_channels_last() ? channels_moved(sample, ChannelAxis::kFirst) : sample;
  }
  void load_image(Sample sample, const Box& box, at::Tensor target) const override;
  void load_target(Sample sample, const Box& box, at::Tensor target) const override;

 private:
  bool targets_channels_last() const {
    return channels_ == ChannelAxis::kLast && real_targets() && targets_->shape().size() > 2;
  }
  void choose_image_shape(const Shape& wanted);
  [[noreturn]] void refuse_image_shape(const Shape& wanted) const;
  void check_targets() const;
  int64_t largest_label() const;
  /// Puts kIgnoreLabel where the file has the label to ignore; refuses those that are not a class.
  void check_labels(int64_t sample, const Box& box, at::Tensor labels) const;

  const ArrayReader images_;
  std::optional<ArrayReader> targets_;
  Shape image_shape_;
  const ChannelAxis channels_;
  bool has_channels_ = true;  // the image file has an axis for them
  int64_t num_classes_ = 0;
  int64_t ignored_ = kNoLabel;
};

NpyDataset::NpyDataset(const std::string& images, const std::string& targets,
                       const Shape& image_shape, ChannelAxis channels)
    : images_(images), channels_(channels) {
  if (!targets.empty()) targets_.emplace(targets);
  choose_image_shape(image_shape);
  if (has_targets()) check_targets();
}

/// With a wanted shape it is clear whether the file has a channel axis. Without, targets per pixel
/// tell, and after that images are taken to have one.
void NpyDataset::choose_image_shape(const Shape& wanted) {
  const Shape& held = images_.shape();
  if (held.size() < 2 || held.size() > 5 || *std::min_element(held.begin(), held.end()) < 1)
    throw_error<InvalidInput>(
        "[npy] {}: images are samples x channels x 1 to 3 spatial sizes (one channel may be left "
        "out), all at least 1, got shape {}",
        images_.path(), to_string(held));
  Shape with_channels(held.begin() + 1, held.end());
  Shape one_channel = with_channels;
  if (channels_ == ChannelAxis::kLast)
    with_channels = channels_moved(with_channels, ChannelAxis::kFirst);
  one_channel.insert(one_channel.begin(), 1);
  if (wanted.empty())
    has_channels_ = held.size() > 2 && !(has_targets() && targets_->shape() == held);
  else
    has_channels_ = is_of_shape(with_channels, wanted);
  image_shape_ = has_channels_ ? with_channels : one_channel;
  if (!wanted.empty() && !is_of_shape(image_shape_, wanted)) refuse_image_shape(wanted);
}

void NpyDataset::refuse_image_shape(const Shape& wanted) const {
  const Shape& held = images_.shape();
  const Shape sample(held.begin() + 1, held.end());
  const Shape in_file =
      channels_ == ChannelAxis::kLast ? channels_moved(wanted, ChannelAxis::kLast) : wanted;
  if (channels_ == ChannelAxis::kLast && is_of_shape(sample, wanted))
    throw_error<InvalidInput>(
        "[npy] {}: the file's shape is {}, which has the channels first; leave --channels-last out",
        images_.path(), to_string(held));
  if (channels_ == ChannelAxis::kFirst &&
      is_of_shape(channels_moved(sample, ChannelAxis::kFirst), wanted))
    throw_error<InvalidInput>(
        "[npy] {}: the file's shape is {}, which has the channels last, images of {} (channels x "
        "spatial) need Nx{}; --channels-last takes the file as it is",
        images_.path(), to_string(held), to_string(wanted), to_string(wanted));
  throw_error<InvalidInput>(
      "[npy] {}: the file's shape is {}, images of {} (channels x spatial) need Nx{}; give the "
      "file's sizes as --input",
      images_.path(), to_string(held), to_string(wanted), to_string(in_file));
}

void NpyDataset::check_targets() const {
  // Whether they fit the network's outputs, which need not have the size of the images, is seen
  // where both are known.
  const Shape& held = targets_->shape();
  if (held.empty() || held[0] != size() || *std::min_element(held.begin(), held.end()) < 1)
    throw_error<InvalidInput>(
        "[npy] {}: the targets' shape {} does not fit {} in {}; give samples x spatial "
        "(labels per pixel), samples (one per image), or samples x channels x spatial (numbers)",
        targets_->path(), to_string(held), counted(size(), "image"), images_.path());
}

void NpyDataset::set_labels(int64_t num_classes, int64_t ignored) {
  ignored_ = ignored;
  if (!has_targets()) {
    if (ignored != kNoLabel)
      throw_error<InvalidInput>("[npy] {}: there are no labels to ignore; leave ignore={} out",
                                images_.path(), ignored);
    return;
  }
  if (real_targets()) {
    if (ignored != kNoLabel)
      throw_error<InvalidInput>("[npy] {}: numbers cannot be ignored; leave ignore={} out",
                                targets_->path(), ignored);
    return;
  }
  num_classes_ = num_classes > 0 ? num_classes : largest_label() + 1;
  if (num_classes_ > kMaxClasses)
    throw_error<InvalidInput>(
        "[npy] {}: it has labels beyond {}; give those that are not classes "
        "as ignore=LABEL",
        targets_->path(), kMaxClasses - 1);
}

int64_t NpyDataset::largest_label() const {
  int64_t largest = 0;
  for (int64_t sample = 0; sample < size(); ++sample) {
    Box box = Box::whole(targets_->shape());
    box[0] = {sample, sample + 1};
    at::Tensor labels = at::empty(box.shape(), at::kLong);
    targets_->read(box, labels);
    const int64_t* data = labels.data_ptr<int64_t>();
    for (int64_t i = 0; i < labels.numel(); ++i)
      if (data[i] != ignored_) largest = std::max(largest, std::min(data[i], kMaxClasses));
  }
  return largest;
}

void NpyDataset::load_image(Sample sample, const Box& box, at::Tensor target) const {
  check_request("npy image", image_shape_, box, target);
  if (box.empty()) return;
  if (has_channels_ && channels_ == ChannelAxis::kLast)
    return read_channels_last(images_, sample, box, target);
  Box file_box{{sample, sample + 1}};
  for (int axis = has_channels_ ? 0 : 1; axis < box.num_axes(); ++axis)
    file_box.push_back(box[axis]);
  images_.read(file_box, target);
}

void NpyDataset::load_target(Sample sample, const Box& box, at::Tensor target) const {
  check_request("npy target", target_shape(), box, target);
  if (box.empty()) return;
  if (targets_channels_last()) return read_channels_last(*targets_, sample, box, target);
  Box file_box{{sample, sample + 1}};
  for (int axis = 0; axis < box.num_axes(); ++axis) file_box.push_back(box[axis]);
  if (real_targets()) return targets_->read(file_box, target);
  at::Tensor labels = target.is_cpu() ? target : at::empty(box.shape(), at::kLong);
  targets_->read(file_box, labels);
  check_labels(sample, box, labels);
  if (!target.is_cpu()) target.copy_(labels);
}

void NpyDataset::check_labels(int64_t sample, const Box& box, at::Tensor labels) const {
  int64_t* data = labels.data_ptr<int64_t>();
  const int64_t stride = row_stride(box, labels.strides());
  for_each_row(box, labels.strides(), [&](const Position& at, int64_t offset) {
    for (int64_t i = 0; i < row_length(box); ++i) {
      int64_t& label = data[offset + i * stride];
      if (label == ignored_) label = kIgnoreLabel;
      if ((0 <= label && label < num_classes_) || label == kIgnoreLabel) continue;
      Shape position(at.begin(), at.begin() + box.num_axes());
      if (!position.empty()) position.back() += i;
      throw_error<InvalidInput>(
          "[npy] {}: label {} in sample {} at position ({}); legal: 0 to {}, {} to ignore a pixel, "
          "or another with ignore=LABEL",
          targets_->path(), label, sample, to_string(position), num_classes_ - 1, kIgnoreLabel);
    }
  });
}

}  // namespace

std::unique_ptr<Dataset> open_npy_dataset(const std::string& text, const Shape& image_shape,
                                          int64_t num_classes, ChannelAxis channels) {
  const size_t first = std::min(text.find(','), text.size());
  size_t second = std::min(text.find(',', first + 1), text.size());
  const std::string images = text.substr(0, first);
  std::string targets = first < text.size() ? text.substr(first + 1, second - first - 1) : "";
  if (targets.starts_with("classes=") || targets.starts_with("ignore=")) {  // images alone
    targets.clear();
    second = first;
  }
  if (images.empty() || (targets.empty() && second != first))
    throw_error<InvalidInput>(
        "[npy] '{}' does not name files; write npy:images.npy,targets.npy (then ,classes=K or "
        ",ignore=LABEL), or npy:images.npy to predict",
        text);
  const KeyValues options("npy", second < text.size() ? text.substr(second + 1) : "",
                          {{"classes"}, {"ignore"}});
  auto dataset = std::make_unique<NpyDataset>(images, targets, image_shape, channels);
  if (options.has("classes")) num_classes = options.integer("classes", 1, kMaxClasses);
  int64_t ignored = kNoLabel;
  using Limits = std::numeric_limits<int32_t>;
  if (options.has("ignore")) ignored = options.integer("ignore", Limits::min(), Limits::max());
  dataset->set_labels(num_classes, ignored);
  return dataset;
}

}  // namespace tessera
