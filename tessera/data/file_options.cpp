#include "tessera/data/file_options.h"

#include <limits>

#include "tessera/data/mask_values.h"
#include "tessera/data/sample_list.h"

namespace tessera {
namespace {

constexpr int64_t kMostLevels = 64;

/// The options of images have these names, those of masks begin with mask_.
ArrayOptions array_options(const KeyValues& values, const std::string& place,
                           const std::string& prefix) {
  ArrayOptions options;
  const auto key = [&](const char* name) { return prefix + name; };
  if (values.has(key("level")))
    options.level = static_cast<int>(values.integer(key("level"), 0, kMostLevels));
  options.dataset = values.text(key("dataset"));
  options.raw_shape = values.sizes(key("shape"));
  if (values.has(key("type")))
    options.raw_type = pixel_type_called(values.text(key("type")), place);
  return options;
}

}  // namespace

const std::vector<KeyInfo>& file_option_keys() {
  static const std::vector<KeyInfo> keys{
      {"classes", "", "number of classes: labels are 0 to classes-1"},
      {"ignore", "", "the label of pixels that do not count"},
      {"values", "",
       "labels of the masks' values: 0:0/255:1; auto: those that occur become 0, 1, 2, ..."},
      {"targets", "", "labels, or numbers to be met; without it real numbers are numbers"},
      {"split", "", "train, validation or test: take these samples alone"},
      {"pages", "", "what the pages of a file are: channels, depth or samples"},
      {"level", "", "resolution to read, 0 is the finest"},
      {"mpp", "", "the level whose pixels are nearest to so many microns"},
      {"dataset", "", "name of the array in a file that holds several"},
      {"shape", "", "sizes of a raw file: 512x512"},
      {"type", "", "type of a raw file: uint16"},
      {"mask_level", "", "as level, of the masks"},
      {"mask_dataset", "", "as dataset, of the masks"},
      {"mask_shape", "", "as shape, of the masks"},
      {"mask_type", "", "as type, of the masks"}};
  return keys;
}

FileOptions parse_file_options(const std::string& place, const std::string& text) {
  const KeyValues values(place, text, file_option_keys());
  FileOptions options;
  options.images = array_options(values, place, "");
  options.masks = array_options(values, place, "mask_");
  if (values.has("mpp")) options.images.microns_per_pixel = values.real("mpp", 1e-6, 1e6);
  if (values.has("pages")) {
    const std::string pages = values.choice("pages", {"channels", "depth", "samples"});
    options.pages = pages == "channels" ? Pages::kChannels
                    : pages == "depth"  ? Pages::kDepth
                                        : Pages::kSamples;
  }
  if (values.has("targets"))
    options.targets = values.choice("targets", {"labels", "numbers"}) == "labels"
                          ? FileTargets::kLabels
                          : FileTargets::kNumbers;
  if (values.has("classes")) options.num_classes = values.integer("classes", 1, kMostClasses);
  using Limits = std::numeric_limits<int32_t>;
  if (values.has("ignore"))
    options.ignored = values.integer("ignore", Limits::min(), Limits::max());
  options.values = values.text("values");
  if (!options.values.empty() && options.values != "auto") parse_mask_values(options.values, place);
  if (values.has("split"))
    options.part = part_called(values.choice("split", {"train", "validation", "test"}));
  return options;
}

}  // namespace tessera
