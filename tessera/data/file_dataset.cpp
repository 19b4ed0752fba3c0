#include "tessera/data/file_dataset.h"

#include <algorithm>
#include <mutex>
#include <set>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/data/box_rows.h"
#include "tessera/data/in_parallel.h"
#include "tessera/data/label_strips.h"
#include "tessera/data/mask_values.h"
#include "tessera/data/sample_files.h"

namespace tessera {
namespace {

class FileDataset final : public Dataset {
 public:
  FileDataset(SampleList list, SetForm form, const FileOptions& options, const DataWish& wish);

  int64_t size() const override { return std::ssize(list_.samples) * samples_per_file_; }
  Shape image_shape() const override { return image_shape_; }
  Shape image_shape_of(int64_t sample) const override { return header_of(sample).image; }
  Shape target_shape() const override { return target_shape_; }
  Shape target_shape_of(int64_t sample) const override { return header_of(sample).target; }
  std::string name_of(int64_t sample) const override {
    return samples_per_file_ > 1 ? std::to_string(sample) : entry_of(sample).name;
  }
  std::vector<std::string> files_of(int64_t sample) const override;
  ImageFrame frame_of(int64_t sample) const override { return header_of(sample).frame; }
  std::set<PixelType> pixel_types() const override { return pixel_types_; }
  bool has_targets() const override { return source_ != Source::kNone; }
  bool has_target(int64_t sample) const override {
    const ListedSample& entry = entry_of(sample);
    return has_targets() && (!entry.target.empty() || entry.label);
  }
  int64_t num_classes() const override;
  std::vector<std::string> class_names() const override { return list_.class_names; }
  SamplePart part_of(int64_t sample) const override { return entry_of(sample).part; }
  double weight_of(int64_t sample) const override { return entry_of(sample).weight; }
  bool per_pixel() const override { return per_pixel_; }
  bool real_targets() const override { return numbers_; }
  void load_image(Sample sample, const Box& box, at::Tensor target) const override;
  void load_target(Sample sample, const Box& box, at::Tensor target) const override;

 private:
  /// Where targets come from.
  enum class Source { kNone, kFiles, kList };

  const ListedSample& entry_of(int64_t sample) const {
    return list_.samples.at(static_cast<size_t>(sample / samples_per_file_));
  }
  const SampleHeader& header_of(int64_t sample) const {
    return headers_.at(static_cast<size_t>(sample / samples_per_file_));
  }

  void find_source();
  void read_headers();
  void check_headers_agree();
  void find_values();

  /// What the target file has, as whole numbers: not yet labels.
  void load_values(int64_t sample, const Box& box, at::Tensor values) const;
  /// Calls visit(value) with each value of each strip of targets, those to ignore left out; one
  /// call after the other.
  template <class Visit>
  void for_each_value(const Visit& visit) const;
  int64_t largest_label() const;
  bool is_ignored(int64_t value) const { return value == kIgnoreLabel || value == ignored_; }
  [[noreturn]] void refuse_label(int64_t sample, const Box& box, int64_t element,
                                 int64_t value) const;

  const SampleList list_;
  const FileOptions options_;
  const int64_t classes_of_model_;
  const SampleFiles files_;
  const std::optional<int64_t> ignored_;
  std::vector<SampleHeader> headers_;
  int64_t samples_per_file_ = 1;
  Source source_ = Source::kNone;
  bool numbers_ = false;
  bool per_pixel_ = false;
  Shape image_shape_;
  Shape target_shape_;
  std::set<PixelType> pixel_types_;
  MaskValues values_;
  mutable std::once_flag counted_;
  mutable int64_t counted_classes_ = 0;
};

FileDataset::FileDataset(SampleList list, SetForm form, const FileOptions& options,
                         const DataWish& wish)
    : list_(std::move(list)),
      options_(options),
      classes_of_model_(wish.num_classes),
      files_(form, options, wish, list_.targets_are_labels),
      ignored_(options.ignored ? options.ignored : list_.ignored) {
  find_source();
  read_headers();
  check_headers_agree();
  if (numbers_ && options_.ignored)
    throw_error<InvalidInput>("[data] {}: numbers cannot be ignored; leave ignore={} out",
                              list_.source, *options_.ignored);
  if (numbers_ && !options_.values.empty())
    throw_error<InvalidInput>("[data] {}: values={} is for labels, and the targets are numbers",
                              list_.source, options_.values);
  find_values();
}

std::vector<std::string> FileDataset::files_of(int64_t sample) const {
  const ListedSample& entry = entry_of(sample);
  std::vector<std::string> files = entry.images;
  if (!entry.target.empty()) files.push_back(entry.target);
  return files;
}

/// Samples for tests may lack targets, all others have them or none has.
void FileDataset::find_source() {
  const ListedSample* first = nullptr;
  for (const ListedSample& entry : list_.samples) {
    if (entry.part == SamplePart::kTest && entry.target.empty() && !entry.label &&
        options_.part != SamplePart::kTest)
      continue;
    const Source source = !entry.target.empty() ? Source::kFiles
                          : entry.label         ? Source::kList
                                                : Source::kNone;
    if (first == nullptr) {
      first = &entry;
      source_ = source;
    } else if (source != source_) {
      const auto words = [](Source what) {
        return what == Source::kFiles ? "a mask" : what == Source::kList ? "a label" : "no target";
      };
      throw_error<InvalidInput>(
          "[data] {}: {} has {} and {} has {}; give all samples the same kind of target",
          list_.source, first->images.front(), words(source_), entry.images.front(), words(source));
    }
  }
}

void FileDataset::read_headers() {
  headers_.resize(list_.samples.size());
  in_parallel(std::ssize(headers_), reading_threads(), [&](int64_t index, int64_t) {
    headers_[index] = files_.header_of(list_.samples[index]);
  });
  samples_per_file_ = headers_.front().samples;
}

void FileDataset::check_headers_agree() {
  const SampleHeader& first = headers_.front();
  const ListedSample* with_target = nullptr;
  bool same_image = true, same_target = true;
  for (size_t i = 0; i < headers_.size(); ++i) {
    const SampleHeader& header = headers_[i];
    const ListedSample& entry = list_.samples[i];
    if (header.image.size() != first.image.size() || header.image[0] != first.image[0])
      throw_error<InvalidInput>(
          "[data] {}: an image of {}, and {} has {} (channels x spatial); all images of a set have "
          "the same channels and number of axes",
          entry.images.front(), to_string(header.image), list_.samples[0].images.front(),
          to_string(first.image));
    same_image = same_image && header.image == first.image;
    pixel_types_.insert(header.types.begin(), header.types.end());
    if (entry.target.empty()) continue;
    if (with_target == nullptr) {
      with_target = &entry;
      numbers_ = header.numbers;
      target_shape_ = header.target;
    } else if (header.numbers != numbers_) {
      throw_error<InvalidInput>(
          "[data] {} and {}: one has whole numbers, one has not; say which they are by "
          "targets=labels or targets=numbers",
          entry.target, with_target->target);
    }
    same_target = same_target && header.target == target_shape_;
  }
  per_pixel_ = !target_shape_.empty();
  if (same_image) image_shape_ = first.image;
  if (!same_target) target_shape_.clear();
}

void FileDataset::find_values() {
  if (options_.values.empty()) return;
  if (source_ != Source::kFiles)
    throw_error<InvalidInput>("[data] {}: values={} is for masks, and there are none", list_.source,
                              options_.values);
  if (options_.values != "auto") {
    values_ = parse_mask_values(options_.values, "data");
    return;
  }
  std::set<int64_t> found;
  for_each_value([&](int64_t value) {
    if (std::ssize(found) <= kMostClasses) found.insert(value);
  });
  if (std::ssize(found) > kMostClasses)
    throw_error<InvalidInput>("[data] {}: values=auto finds more than {} values; are these masks?",
                              list_.source, kMostClasses);
  values_ = MaskValues::in_order({found.begin(), found.end()});
}

template <class Visit>
void FileDataset::for_each_value(const Visit& visit) const {
  const LabelStrips strips(*this, size());
  std::mutex mutex;
  in_parallel(strips.size(), reading_threads(), [&](int64_t index, int64_t) {
    const LabelStrip strip = strips.place_of(index);
    at::Tensor values = at::empty(strip.box.shape(), at::kLong);
    load_values(strip.sample, strip.box, values);
    // Neighbours are mostly alike: each worker hands over what differs from its predecessor.
    const int64_t* data = values.data_ptr<int64_t>();
    std::set<int64_t> of_strip;
    for (int64_t i = 0; i < values.numel(); ++i)
      if ((i == 0 || data[i] != data[i - 1]) && !is_ignored(data[i])) of_strip.insert(data[i]);
    const std::lock_guard lock(mutex);
    for (int64_t value : of_strip) visit(value);
  });
}

int64_t FileDataset::largest_label() const {
  int64_t largest = 0;
  for_each_value([&](int64_t value) {
    largest = std::max(largest, std::min(values_.label_of(value).value_or(0), kMostClasses));
  });
  return largest;
}

int64_t FileDataset::num_classes() const {
  if (numbers_ || source_ == Source::kNone) return 0;
  if (options_.num_classes > 0) return options_.num_classes;
  if (!list_.class_names.empty()) return std::ssize(list_.class_names);
  if (classes_of_model_ > 0) return classes_of_model_;
  std::call_once(counted_, [&] {
    const int64_t classes = largest_label() + 1;
    if (classes > kMostClasses)
      throw_error<InvalidInput>(
          "[data] {}: it has labels beyond {}; give those that are not classes as ignore=LABEL",
          list_.source, kMostClasses - 1);
    counted_classes_ = classes;
  });
  return counted_classes_;
}

void FileDataset::load_image(Sample sample, const Box& box, at::Tensor target) const {
  const SampleHeader& header = header_of(sample);
  check_request("image of files", header.image, box, target);
  if (!box.empty())
    files_.read_image(entry_of(sample), header, sample % samples_per_file_, box, target);
}

void FileDataset::load_values(int64_t sample, const Box& box, at::Tensor values) const {
  const ListedSample& entry = entry_of(sample);
  if (source_ == Source::kList)
    values.fill_(entry.label.value());
  else
    files_.read_target(entry, header_of(sample), sample % samples_per_file_, box, values);
}

void FileDataset::load_target(Sample sample, const Box& box, at::Tensor target) const {
  if (!has_target(sample))
    throw_error<InvalidInput>("[data] {} has no target, neither a mask nor a label",
                              entry_of(sample).images.front());
  check_request("target of files", header_of(sample).target, box, target);
  if (box.empty()) return;
  if (numbers_) return load_values(sample, box, target);
  at::Tensor labels = at::empty(box.shape(), at::kLong);
  load_values(sample, box, labels);
  const int64_t classes = num_classes();
  int64_t* data = labels.data_ptr<int64_t>();
  int64_t last_value = kIgnoreLabel, last_label = kIgnoreLabel;
  for (int64_t i = 0; i < labels.numel(); ++i) {
    if (data[i] != last_value) {
      last_value = data[i];
      last_label =
          is_ignored(last_value) ? kIgnoreLabel : values_.label_of(last_value).value_or(-1);
      if (last_label != kIgnoreLabel && (last_label < 0 || last_label >= classes))
        refuse_label(sample, box, i, last_value);
    }
    data[i] = last_label;
  }
  target.copy_(labels);
}

void FileDataset::refuse_label(int64_t sample, const Box& box, int64_t element,
                               int64_t value) const {
  Shape position(static_cast<size_t>(box.num_axes()));
  for (int axis = box.num_axes() - 1; axis >= 0; --axis) {
    position[axis] = box[axis].begin + element % box[axis].size();
    element /= box[axis].size();
  }
  const ListedSample& entry = entry_of(sample);
  const std::string where =
      entry.target.empty() ? list_.source + ", " + entry.images.front() : entry.target;
  const std::string sample_name =
      samples_per_file_ > 1 ? std::to_string(sample) : fmt::format("{} ({})", sample, entry.name);
  if (!values_.changes_nothing())
    throw_error<InvalidInput>(
        "[data] {}: value {} in sample {} at position ({}); values={} gives labels to {}, of {}",
        where, value, sample_name, to_string(position), options_.values, values_.legal(),
        counted(num_classes(), "class", "classes"));
  throw_error<InvalidInput>(
      "[data] {}: label {} in sample {} at position ({}); legal: 0 to {}, {} to ignore a pixel, or "
      "another with ignore=LABEL; values=0:0/255:1 gives other values labels",
      where, value, sample_name, to_string(position), num_classes() - 1, kIgnoreLabel);
}

}  // namespace

std::unique_ptr<Dataset> open_file_dataset(SampleList list, const FileOptions& options,
                                           const DataWish& wish) {
  if (options.part) {
    std::erase_if(list.samples,
                  [&](const ListedSample& sample) { return sample.part != *options.part; });
    if (list.samples.empty())
      throw_error<InvalidInput>("[data] {}: no sample is in the split that is asked for",
                                list.source);
  }
  return std::make_unique<FileDataset>(std::move(list), SetForm::kList, options, wish);
}

std::unique_ptr<Dataset> open_file_pair(const std::string& images, const std::string& targets,
                                        const FileOptions& options, const DataWish& wish) {
  if (options.part)
    throw_error<InvalidInput>(
        "[data] {}: split= is for folders and lists, which say what a sample is for; leave it out",
        images);
  SampleList list;
  list.source = targets.empty() ? images : targets;
  list.samples.push_back({.images = {images}, .target = targets});
  name_samples(&list);
  return std::make_unique<FileDataset>(std::move(list), SetForm::kPair, options, wish);
}

}  // namespace tessera
