#include "tessera/data/folder_list.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <set>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/data/json_list.h"
#include "tessera/images/open_array.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

/// Sorted by name, without hidden ones.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    if (!entry->path().filename().string().starts_with('.')) entries.push_back(entry->path());
  if (error)
    throw_error<InvalidInput>("[folder] cannot read {}: {}", folder.string(), error.message());
  std::sort(entries.begin(), entries.end());
  return entries;
}

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

/// The images of a folder; a folder may be one itself, such as a series of slices.
std::vector<std::string> images_in(const fs::path& folder) {
  std::vector<std::string> images;
  for (const fs::path& entry : entries_of(folder))
    if (is_image_path(entry.string())) images.push_back(entry.string());
  return images;
}

/// All folders in it, those that are images themselves included.
std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> folders = entries_of(folder);
  std::erase_if(folders, [](const fs::path& entry) { return !is_folder(entry); });
  return folders;
}

[[noreturn]] void refuse_no_images(const fs::path& folder) {
  throw_error<InvalidInput>("[folder] {} has no images; their names end in {}", folder.string(),
                            joined(image_endings(), " "));
}

/// "x" of "x_0001"; empty where the stem does not end so.
std::string without_channel(const std::string& stem) {
  if (stem.size() < 6 || stem[stem.size() - 5] != '_') return "";
  const bool digits = std::all_of(stem.end() - 4, stem.end(),
                                  [](unsigned char letter) { return std::isdigit(letter) != 0; });
  return digits ? stem.substr(0, stem.size() - 5) : "";
}

/// The masks of a folder by the names that their images may have.
class Masks {
 public:
  explicit Masks(const fs::path& folder) {
    for (const std::string& path : images_in(folder)) {
      const std::string stem = image_stem(path);
      if (const auto [place, is_new] = by_stem_.emplace(stem, path); !is_new)
        throw_error<InvalidInput>("[folder] {} and {} are masks of one name; keep one of them",
                                  place->second, path);
    }
    if (by_stem_.empty()) refuse_no_images(folder);
  }

  bool has(const std::string& name) const { return find(name) != by_stem_.end(); }

  /// The mask of an image, which is used from now on; empty where there is none.
  std::string take(const std::string& name) {
    const auto found = find(name);
    if (found == by_stem_.end()) return "";
    used_.insert(found->first);
    return found->second;
  }

  void check_all_used(const fs::path& images) const {
    for (const auto& [stem, path] : by_stem_)
      if (!used_.contains(stem))
        throw_error<InvalidInput>("[folder] {} has no image of that name in {}; {} of {} have none",
                                  path, images.string(), by_stem_.size() - used_.size(),
                                  counted(std::ssize(by_stem_), "mask"));
  }

 private:
  using Paths = std::map<std::string, std::string>;

  Paths::const_iterator find(const std::string& name) const {
    for (const char* ending : {"", "_mask", "_masks", "_seg", "_label", "_labels", "_gt"})
      if (const auto found = by_stem_.find(name + ending); found != by_stem_.end()) return found;
    return by_stem_.end();
  }

  Paths by_stem_;
  std::set<std::string> used_;
};

/// Whether x_0000 is a channel of x: numbers at the end of names may also count images, so only
/// where the masks, or else nnU-Net's name of the folder, say so.
bool has_channel_files(const fs::path& folder, const std::vector<std::string>& images,
                       const Masks* masks) {
  const std::string stem = image_stem(images.front()), name = without_channel(stem);
  if (name.empty()) return false;
  return masks != nullptr ? !masks->has(stem) && masks->has(name)
                          : folder.filename().string().starts_with("imagesT");
}

/// One sample for each image, its channels together.
std::vector<ListedSample> joined_channels(const std::vector<std::string>& images, bool by_number) {
  std::vector<ListedSample> samples;
  for (const std::string& path : images) {
    const std::string stem = image_stem(path);
    const std::string name = by_number ? without_channel(stem) : stem;
    if (name.empty())
      throw_error<InvalidInput>(
          "[folder] {} has no channel at the end of its name, and others have; call it {}_0000",
          path, stem);
    if (!by_number || samples.empty() || samples.back().name != name)
      samples.push_back({.images = {}, .name = name});
    samples.back().images.push_back(path);
  }
  return samples;
}

std::vector<ListedSample> pairs_of(const fs::path& images_folder, const fs::path& masks_folder,
                                   SamplePart part) {
  const std::vector<std::string> images = images_in(images_folder);
  if (images.empty()) refuse_no_images(images_folder);
  std::optional<Masks> masks;
  if (!masks_folder.empty()) masks.emplace(masks_folder);
  const bool by_number = has_channel_files(images_folder, images, masks ? &*masks : nullptr);
  std::vector<ListedSample> samples = joined_channels(images, by_number);
  for (ListedSample& sample : samples) {
    sample.part = part;
    if (!masks) continue;
    sample.target = masks->take(sample.name);
    if (sample.target.empty())
      throw_error<InvalidInput>(
          "[folder] {} has no mask: {} has none called {}; give it one, or take the image away",
          sample.images.front(), masks_folder.string(), sample.name);
  }
  if (masks) masks->check_all_used(images_folder);
  return samples;
}

/// Samples with the names of their classes; empty names: none.
struct NamedSamples {
  std::vector<ListedSample> samples;
  std::vector<std::string> classes;

  void add(ListedSample sample, const std::string& class_name) {
    samples.push_back(std::move(sample));
    classes.push_back(class_name);
  }
};

void add_class_folders(const std::vector<fs::path>& folders, SamplePart part, NamedSamples* found) {
  for (const fs::path& folder : folders) {
    const std::vector<std::string> images = images_in(folder);
    if (images.empty()) refuse_no_images(folder);
    for (const std::string& path : images)
      found->add({.images = {path}, .part = part}, folder.filename().string());
  }
}

/// The first of these folders that is there, or an empty path.
fs::path first_folder(const fs::path& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (is_folder(folder / name)) return folder / name;
  return {};
}

void add_samples(const fs::path& folder, SamplePart part, NamedSamples* found) {
  const auto add_pairs = [&](const fs::path& images, const fs::path& masks, SamplePart of) {
    for (ListedSample& sample : pairs_of(images, masks, of)) found->add(std::move(sample), "");
  };
  if (const fs::path images = first_folder(folder, {"images", "imagesTr"}); !images.empty()) {
    add_pairs(images, first_folder(folder, {"masks", "labels", "labelsTr"}), part);
    if (const fs::path tests = first_folder(folder, {"imagesTs"}); !tests.empty())
      add_pairs(tests, first_folder(folder, {"labelsTs"}), SamplePart::kTest);
    return;
  }
  const std::vector<std::string> images = images_in(folder);
  std::vector<fs::path> folders = folders_in(folder);
  std::erase_if(folders, [](const fs::path& each) { return is_image_path(each.string()); });
  if (images.empty() && folders.empty()) refuse_no_images(folder);
  if (!images.empty() && !folders.empty())
    throw_error<InvalidInput>(
        "[folder] {} has images and folders, {} and {}; put images into images/ (masks into "
        "masks/), or into a folder for each class",
        folder.string(), fs::path(images.front()).filename().string(),
        folders.front().filename().string());
  for (const std::string& path : images) found->add({.images = {path}, .part = part}, "");
  add_class_folders(folders, part, found);
}

/// train/, val/ and test/, where there is nothing else: a class may be called train, too. Slices of
/// DICOM in them are images.
bool are_parts(const std::vector<fs::path>& folders) {
  return !folders.empty() && std::ranges::all_of(folders, [](const fs::path& folder) {
    return part_called(folder.filename().string()).has_value();
  });
}

}  // namespace

std::vector<ListedSample> list_pairs(const std::string& images, const std::string& labels,
                                     SamplePart part) {
  return pairs_of(images, is_folder(labels) ? labels : "", part);
}

SampleList list_folder(const std::string& path) {
  if (!is_folder(path))
    throw_error<InvalidInput>("[folder] {} is not a folder; give one that exists", path);
  const fs::path description = fs::path(path) / "dataset.json";
  std::error_code error;
  if (is_folder(fs::path(path) / "imagesTr") && fs::exists(description, error))
    return list_json(description.string());
  NamedSamples found;
  if (const std::vector<fs::path> folders = folders_in(path); are_parts(folders))
    for (const fs::path& folder : folders)
      add_samples(folder, *part_called(folder.filename().string()), &found);
  else
    add_samples(path, SamplePart::kAny, &found);
  SampleList list;
  list.source = path;
  std::set<std::string> names(found.classes.begin(), found.classes.end());
  names.erase("");
  list.class_names.assign(names.begin(), names.end());
  for (size_t i = 0; i < found.samples.size(); ++i)
    if (!found.classes[i].empty())
      found.samples[i].label = std::distance(names.begin(), names.find(found.classes[i]));
  list.samples = std::move(found.samples);
  name_samples(&list);
  return list;
}

}  // namespace tessera
