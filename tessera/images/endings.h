#pragma once
// Formats by the endings of names, whatever their letters' case: what the tables of those that are
// read (open_array.cpp) and of those that are written (array_writer.cpp) have in common. A format
// is anything with a list of `endings`.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/base/text.h"

namespace tessera {

/// The format of a path and the length of its ending; null where none fits.
template <class Format>
std::pair<const Format*, size_t> format_by_ending(const std::vector<Format>& formats,
                                                  const std::string& path) {
  const std::string name = lower_case(path);
  for (const Format& format : formats)
    for (std::string_view ending : format.endings)
      if (name.ends_with(ending)) return {&format, ending.size()};
  return {nullptr, 0};
}

template <class Format>
std::vector<std::string> all_endings(const std::vector<Format>& formats) {
  std::vector<std::string> endings;
  for (const Format& format : formats)
    endings.insert(endings.end(), format.endings.begin(), format.endings.end());
  return endings;
}

}  // namespace tessera
