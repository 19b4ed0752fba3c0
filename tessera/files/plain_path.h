#pragma once
// Paths that can be compared: two names of one file, through links or spelled in two ways, give the
// same plain path.

#include <filesystem>
#include <string>

namespace tessera {

/// Absolute, with links followed and dots and the last slash taken away. A path that cannot be
/// followed stays as it is: opening it will say why.
std::filesystem::path plain_path(const std::string& path);

/// Whether a plain path is another one, or lies in the folder that the other one names.
bool lies_in(const std::filesystem::path& path, const std::filesystem::path& folder);

}  // namespace tessera
