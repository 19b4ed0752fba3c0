#include "tests/attack/writers/snapshot.h"

#include <sys/stat.h>

#include <filesystem>

#include "tests/attack/writers/child.h"

namespace tessera::attack {

namespace fs = std::filesystem;

std::string describe_entry(const std::string& path) {
  struct stat status;
  if (::lstat(path.c_str(), &status) != 0) return "nothing";
  std::string text = std::to_string(status.st_mode) + " ";
  if (S_ISREG(status.st_mode)) text += read_file(path);
  if (S_ISLNK(status.st_mode)) text += fs::read_symlink(path).string();
  if (S_ISCHR(status.st_mode)) text += std::to_string(status.st_rdev);
  return text;
}

Snapshot snapshot(const std::string& folder) {
  Snapshot entries;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    entries[entry.path().string().substr(folder.size() + 1)] =
        describe_entry(entry.path().string());
  return entries;
}

}  // namespace tessera::attack
