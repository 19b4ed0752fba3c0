#pragma once
// Valid image files of each format that this build reads, for mutations; none where it lacks the
// library.

#include <string>
#include <utility>
#include <vector>

namespace attack {

/// A file of each compression that libtiff writes, and of a few layouts, by name. `scratch` is a
/// path ending in .tif that may be written.
std::vector<std::pair<std::string, std::string>> valid_tiffs(const std::string& scratch);
std::vector<std::string> valid_slides(const std::string& scratch);
std::vector<std::string> valid_pngs();
std::vector<std::string> valid_jpegs();

}  // namespace attack
