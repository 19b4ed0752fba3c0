#include "tessera/files/plain_path.h"

namespace tessera {

namespace fs = std::filesystem;

fs::path plain_path(const std::string& path) {
  std::error_code error;
  fs::path found = fs::weakly_canonical(fs::absolute(path, error), error);
  if (error) found = fs::path(path).lexically_normal();
  return found.has_filename() || !found.has_relative_path() ? found : found.parent_path();
}

bool lies_in(const fs::path& path, const fs::path& folder) {
  const fs::path relative = path.lexically_relative(folder);
  return !relative.empty() && *relative.begin() != "..";
}

}  // namespace tessera
