#pragma once
// Rows of a table or of a JSON file that list samples, as they are written there: what
// table_list.h and json_list.h have in common.

#include "tessera/data/sample_list.h"

namespace tessera {

struct ListedRow {
  std::string where;  // for messages: "list.csv:3"
  std::vector<std::string> images = {};
  std::string mask = {};
  /// The class of the image, by number or by name; or, where it ends as images do, its mask.
  std::string label = {};
  std::string split = {};
  std::string weight = {};
};

/// The samples of the rows, with the paths of their files as they begin at the folder of the list.
/// Labels that are not all numbers are names of classes, in alphabetical order. Throws InvalidInput
/// with [list] and the place of the row.
SampleList list_rows(const std::string& list_path, const std::vector<ListedRow>& rows);

}  // namespace tessera
