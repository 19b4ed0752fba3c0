#include "tessera/data/json_list.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/data/folder_list.h"
#include "tessera/data/listed_rows.h"
#include "tessera/files/json.h"
#include "tessera/files/read_text.h"
#include "tessera/images/open_array.h"

namespace tessera {
namespace {

using Json = nlohmann::json;

/// A text or a number as a table would have it.
std::string cell_of(const Json& row, const std::string& name, const std::string& where) {
  const auto found = row.find(name);
  if (found == row.end() || found->is_null()) return "";
  if (found->is_string()) return found->get<std::string>();
  if (found->is_number()) return json_text(*found);
  throw_error<InvalidInput>("[list] {}: {} is {}; give a text or a number", where, name,
                            excerpt(*found));
}

/// nnU-Net's first version names an image x.nii.gz and stores its channels as x_0000.nii.gz, ...
void resolve_channels(const std::string& list_path, std::vector<std::string>* images) {
  std::error_code error;
  if (images->size() != 1 || std::filesystem::exists(beside(list_path, images->front()), error))
    return;
  const std::string& path = images->front();
  const size_t folder = path.find_last_of('/') + 1;  // 0 without one
  const std::string stem = path.substr(0, folder) + image_stem(path);
  std::vector<std::string> channels;
  while (true) {
    std::string channel =
        fmt::format("{}_{:04}{}", stem, channels.size(), path.substr(stem.size()));
    if (!std::filesystem::exists(beside(list_path, channel), error)) break;
    channels.push_back(std::move(channel));
  }
  if (!channels.empty()) *images = std::move(channels);
}

ListedRow row_of(const std::string& list_path, const Json& json, const std::string& where) {
  ListedRow row{.where = where};
  if (json.is_string()) {  // tests without labels
    row.images = {json.get<std::string>()};
  } else if (!json.is_object()) {
    throw_error<InvalidInput>(
        "[list] {} is {}; give an object such as {{\"image\": \"a.tif\", \"mask\": \"a.png\"}}",
        where, excerpt(json));
  } else {
    const auto image = json.find("image");
    if (image != json.end() && image->is_array()) {
      for (const Json& file : *image) {
        if (!file.is_string())
          throw_error<InvalidInput>("[list] {}: image has {}; give names of files", where,
                                    excerpt(file));
        row.images.push_back(file.get<std::string>());
      }
    } else {
      row.images = {cell_of(json, "image", where)};
    }
    const auto further = [&](int number) {
      return cell_of(json, fmt::format("image{}", number), where);
    };
    for (int number = 2; !further(number).empty(); ++number) row.images.push_back(further(number));
    row.mask = cell_of(json, "mask", where);
    row.label = cell_of(json, "label", where);
    row.split = cell_of(json, "split", where);
    row.weight = cell_of(json, "weight", where);
  }
  if (!row.images.empty() && !row.images.front().empty()) resolve_channels(list_path, &row.images);
  return row;
}

void add_rows(const std::string& path, const Json& list, const std::string& name,
              const std::string& split, std::vector<ListedRow>* rows) {
  if (!list.is_array())
    throw_error<InvalidInput>("[list] {}: {} is {}; give a list", path, name, excerpt(list));
  for (size_t i = 0; i < list.size(); ++i) {
    ListedRow row = row_of(path, list[i], fmt::format("{}: {}[{}]", path, name, i));
    if (row.split.empty()) row.split = split;
    rows->push_back(std::move(row));
  }
}

/// {"0": "background", "1": "tumour"}, as the first version has it, or the other way round.
void read_classes(const Json& labels, const std::string& path, SampleList* list) {
  if (!labels.is_object())
    throw_error<InvalidInput>("[list] {}: labels is {}; give an object of names and numbers", path,
                              excerpt(labels));
  for (const auto& [key, value] : labels.items()) {
    std::string name = key;
    std::optional<int64_t> label;
    if (value.is_number_integer()) label = value.get<int64_t>();
    if (value.is_string()) {
      label = read_number<int64_t>(key);
      name = value.get<std::string>();
      if (!label) label = read_number<int64_t>(value.get<std::string>()), name = key;
    }
    if (!label || *label < 0 || *label >= kMostClasses)
      throw_error<InvalidInput>(
          "[list] {}: labels has {} for {}; each class has one number from 0 to {} (regions of "
          "several labels are not supported)",
          path, excerpt(value), excerpt(key), kMostClasses - 1);
    if (name == "ignore") {
      list->ignored = *label;
      continue;
    }
    if (std::ssize(list->class_names) <= *label)
      list->class_names.resize(static_cast<size_t>(*label) + 1);
    list->class_names[static_cast<size_t>(*label)] = name;
  }
  for (size_t i = 0; i < list->class_names.size(); ++i)
    if (list->class_names[i].empty()) list->class_names[i] = std::to_string(i);
}

/// nnU-Net's second version: what lies in the folders is the list.
SampleList list_beside(const std::string& path, const Json& json) {
  SampleList list;
  list.source = path;
  list.samples = list_pairs(beside(path, "imagesTr"), beside(path, "labelsTr"), SamplePart::kTrain);
  const auto count = json.find("numTraining");
  if (count != json.end() && *count != std::ssize(list.samples))
    throw_error<InvalidInput>("[list] {}: numTraining is {}, and imagesTr has {}", path,
                              excerpt(*count), counted(std::ssize(list.samples), "image"));
  std::error_code error;
  if (const std::string tests = beside(path, "imagesTs");
      std::filesystem::is_directory(tests, error))
    for (ListedSample& sample : list_pairs(tests, beside(path, "labelsTs"), SamplePart::kTest))
      list.samples.push_back(std::move(sample));
  name_samples(&list);
  return list;
}

SampleList list_of(const std::string& path, const Json& json) {
  std::vector<ListedRow> rows;
  if (json.is_array()) {
    add_rows(path, json, "row", "", &rows);
    return list_rows(path, rows);
  }
  if (!json.is_object())
    throw_error<InvalidInput>("[list] {} is neither a list of samples nor a description", path);
  for (const char* name : {"training", "train", "validation", "val", "test", "testing"})
    if (const auto found = json.find(name); found != json.end())
      add_rows(path, *found, name, name, &rows);
  SampleList list;
  if (!rows.empty())
    list = list_rows(path, rows);
  else if (json.contains("file_ending"))
    list = list_beside(path, json);
  else
    throw_error<InvalidInput>(
        "[list] {} has neither \"training\" (a list of samples) nor \"file_ending\" (with "
        "imagesTr/ "
        "and labelsTr/ beside it)",
        path);
  if (const auto labels = json.find("labels"); labels != json.end() && list.class_names.empty()) {
    read_classes(*labels, path, &list);
    list.targets_are_labels = true;
  }
  return list;
}

}  // namespace

SampleList list_json(const std::string& path) {
  const std::string text = read_text(path, "list");
  Json json;
  try {
    json = parse_json(text);
  } catch (const InvalidInput& error) {
    throw_error<InvalidInput>("[list] {}: {}", path, error.what());
  }
  return list_of(path, json);
}

}  // namespace tessera
