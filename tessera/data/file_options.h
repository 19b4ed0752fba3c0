#pragma once
// The options of data sets of files, which follow their names: "folder:scans,ignore=255,level=1".

#include <optional>
#include <string>
#include <vector>

#include "tessera/base/key_values.h"
#include "tessera/data/dataset.h"
#include "tessera/data/file_images.h"
#include "tessera/images/open_array.h"

namespace tessera {

/// What target files hold.
enum class FileTargets { kByType, kLabels, kNumbers };

struct FileOptions {
  ArrayOptions images = {};
  ArrayOptions masks = {};
  Pages pages = Pages::kAuto;
  FileTargets targets = FileTargets::kByType;
  int64_t num_classes = 0;  // 0: not given
  std::optional<int64_t> ignored = {};
  std::string values = {};  // of masks: "0:0/255:1", "auto", or empty: as they are
  std::optional<SamplePart> part = {};
};

/// All of them, with help.
const std::vector<KeyInfo>& file_option_keys();

/// "key=value,key=value". Throws InvalidInput with [place].
FileOptions parse_file_options(const std::string& place, const std::string& text);

}  // namespace tessera
