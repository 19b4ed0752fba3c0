#pragma once
// What lies in a folder, to the byte, so that a test sees what a program has changed.

#include <map>
#include <string>

namespace tessera::attack {

/// By path below the folder: the kind of each entry, its permissions and what it holds (where a
/// link leads, the number of a device). Nothing is opened but regular files.
using Snapshot = std::map<std::string, std::string>;

Snapshot snapshot(const std::string& folder);
/// Of one entry; "nothing" where there is none.
std::string describe_entry(const std::string& path);

}  // namespace tessera::attack
