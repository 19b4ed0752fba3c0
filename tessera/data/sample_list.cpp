#include "tessera/data/sample_list.h"

#include <filesystem>
#include <functional>
#include <map>

#include "tessera/base/text.h"
#include "tessera/images/open_array.h"

namespace tessera {
namespace {

std::string with_folder(const ListedSample& sample) {
  const std::string folder =
      std::filesystem::path(sample.images.front()).parent_path().filename().string();
  return folder.empty() ? sample.name : folder + "_" + sample.name;
}

/// Gives those that share their name with others another one.
void rename_equal(std::vector<ListedSample>* samples,
                  const std::function<std::string(const ListedSample&)>& other) {
  std::map<std::string, int64_t> uses;
  for (const ListedSample& sample : *samples) ++uses[sample.name];
  for (ListedSample& sample : *samples)
    if (uses[sample.name] > 1) sample.name = other(sample);
}

}  // namespace

std::optional<SamplePart> part_called(const std::string& word) {
  static const std::map<std::string, SamplePart> parts{{"", SamplePart::kAny},
                                                       {"train", SamplePart::kTrain},
                                                       {"training", SamplePart::kTrain},
                                                       {"val", SamplePart::kValidation},
                                                       {"valid", SamplePart::kValidation},
                                                       {"validation", SamplePart::kValidation},
                                                       {"dev", SamplePart::kValidation},
                                                       {"test", SamplePart::kTest},
                                                       {"testing", SamplePart::kTest}};
  const auto found = parts.find(lower_case(word));
  return found == parts.end() ? std::nullopt : std::optional(found->second);
}

void name_samples(SampleList* list) {
  for (ListedSample& sample : list->samples)
    if (sample.name.empty()) sample.name = image_stem(sample.images.front());
  rename_equal(&list->samples, with_folder);
  int64_t number = 0;
  rename_equal(&list->samples, [&](const ListedSample& sample) {
    return sample.name + "_" + std::to_string(++number);
  });
}

std::string beside(const std::string& list_path, const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(list_path).parent_path();
  return (folder / path).lexically_normal().string();
}

}  // namespace tessera
