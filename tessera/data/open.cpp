#include "tessera/data/open.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/base/suggestion.h"
#include "tessera/base/text.h"
#include "tessera/data/folder_list.h"
#include "tessera/data/json_list.h"
#include "tessera/data/synthetic.h"
#include "tessera/data/table_list.h"

namespace tessera {
namespace {

/// "folder:scans,ignore=255": its name, the paths after it, and the options after these.
struct DataSpec {
  std::string name;
  std::vector<std::string> paths = {};
  std::string options = {};
};

bool is_pair_name(const std::string& name) { return name == "files" || name == "npy"; }
bool names_files(const std::string& name) {
  return is_pair_name(name) || name == "folder" || name == "list";
}

DataSpec parse_spec(const std::string& text) {
  const size_t colon = std::min(text.find(':'), text.size());
  DataSpec spec{text.substr(0, colon)};
  spec.options = colon < text.size() ? text.substr(colon + 1) : "";
  if (!names_files(spec.name)) return spec;
  const size_t most = is_pair_name(spec.name) ? 2 : 1;
  while (!spec.options.empty() && spec.paths.size() < most) {
    const size_t comma = std::min(spec.options.find(','), spec.options.size());
    const std::string path = spec.options.substr(0, comma);
    const bool is_option = !spec.paths.empty() && path.find('=') != std::string::npos;
    if (is_option) break;
    spec.paths.push_back(path);
    spec.options.erase(0, comma + 1);
  }
  return spec;
}

std::unique_ptr<Dataset> open_pair(const DataSpec& spec, const std::string& text,
                                   const DataWish& wish) {
  if (spec.paths.empty() || std::ranges::count(spec.paths, "") > 0 || text.ends_with(','))
    throw_error<InvalidInput>(
        "[data] '{}' does not name files; write files:images.npy,targets.npy (then ,classes=K, "
        ",ignore=LABEL or another option), or images alone to predict",
        text);
  return open_file_pair(spec.paths[0], spec.paths.size() > 1 ? spec.paths[1] : "",
                        parse_file_options("data", spec.options), wish);
}

SampleList listed(const DataSpec& spec, const std::string& text) {
  if (spec.paths.empty() || spec.paths[0].empty())
    throw_error<InvalidInput>("[data] '{}' names nothing; write {}", text,
                              spec.name == "folder" ? "folder:PATH" : "list:FILE.csv");
  const std::string& path = spec.paths[0];
  if (spec.name == "folder") return list_folder(path);
  const std::string name = lower_case(path);
  if (name.ends_with(".json")) return list_json(path);
  if (name.ends_with(".csv") || name.ends_with(".tsv")) return list_table(path);
  throw_error<InvalidInput>("[list] {} is not a list of a known format; use .csv, .tsv or .json",
                            path);
}

}  // namespace

std::unique_ptr<Dataset> open_dataset(const std::string& text, const Shape& image_shape,
                                      uint64_t seed, int64_t num_classes, ChannelAxis channels,
                                      ImageSizes sizes) {
  const DataSpec spec = parse_spec(text);
  const DataWish wish{image_shape, sizes, num_classes, channels};
  if (is_pair_name(spec.name)) return open_pair(spec, text, wish);
  if (names_files(spec.name)) {
    const FileOptions options = parse_file_options("data", spec.options);
    return open_file_dataset(listed(spec, text), options, wish);
  }
  if (channels == ChannelAxis::kLast)
    throw_error<InvalidInput>("[--channels-last] is for files, not for '{}'; leave it out", text);
  if (spec.name == "synthetic")
    return make_synthetic(parse_synthetic(spec.options), image_shape, seed);
  throw_error<InvalidInput>(
      "[data] '{}' is not a known data set{}; write folder:PATH, list:FILE.csv, "
      "files:images.npy,targets.npy or synthetic:key=value,...",
      text, did_you_mean(spec.name, {"synthetic", "folder", "list", "files", "npy"}));
}

std::vector<std::string> paths_in_spec(const std::string& spec) { return parse_spec(spec).paths; }

}  // namespace tessera
