#pragma once
// A data set as a list of files: which images there are, and what belongs to each. Folders
// (folder_list.h), tables and JSON files (table_list.h, json_list.h) become such a list, and
// file_dataset.h reads it.

#include <optional>
#include <string>
#include <vector>

#include "tessera/data/dataset.h"

namespace tessera {

struct ListedSample {
  /// One file; or several, whose channels follow each other.
  std::vector<std::string> images = {};
  /// A file with a label per pixel, or with numbers; empty: none.
  std::string target = {};
  /// The class of the whole image.
  std::optional<int64_t> label = {};
  SamplePart part = SamplePart::kAny;
  double weight = 1;
  /// See Dataset::name_of.
  std::string name = {};
};

struct SampleList {
  std::string source = {};  // for messages: the folder or the file
  std::vector<ListedSample> samples = {};
  std::vector<std::string> class_names = {};
  /// The label of pixels that do not count, where the list says it.
  std::optional<int64_t> ignored = {};
  /// Whether target files hold labels even if their numbers are real.
  bool targets_are_labels = false;
};

/// The part that users call so: train, training, val, valid, validation, dev, test, testing, or
/// nothing. None where the word is another.
std::optional<SamplePart> part_called(const std::string& word);

/// Names each sample after its first image, so that no two are called the same: by the stem of the
/// file; where that is not enough, with its folder; and at last with a number.
void name_samples(SampleList* list);

/// The path of a file that a list names: relative ones begin at the list's own folder.
std::string beside(const std::string& list_path, const std::string& path);

}  // namespace tessera
