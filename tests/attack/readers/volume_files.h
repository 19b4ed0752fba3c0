#pragma once
// Small valid files of volumes and maps, for mutation: as many formats as this build reads.

#include <string>
#include <utility>
#include <vector>

namespace tessera {

/// Makes the folder and fills it; the files of each ending.
std::vector<std::pair<std::string, std::vector<std::string>>> make_volume_files(
    const std::string& folder);

}  // namespace tessera
