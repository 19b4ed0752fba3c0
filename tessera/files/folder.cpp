#include "tessera/files/folder.h"

#include <fcntl.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "tessera/files/file_error.h"
#include "tessera/files/output_file.h"

namespace tessera {

void make_folder(const std::string& folder) {
  std::error_code error;
  if (std::filesystem::is_directory(folder, error)) return;
  std::filesystem::create_directories(folder, error);
  if (error) throw_file_error("make the folder", folder, error.value());
  sync_folder(parent_folder(folder));
}

void sync_folder(const std::string& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  // A folder that may be written but not read cannot be opened, and so not forced to the disk.
  if (descriptor < 0 && errno == EACCES) return;
  if (descriptor < 0) throw_file_error("open the folder", folder, errno);
  OutputFile(descriptor, folder).sync();
}

void rename_durably(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0)
    throw_file_error("rename a new file to", to, errno);
  const std::string source = parent_folder(from), target = parent_folder(to);
  sync_folder(target);
  if (source != target) sync_folder(source);
}

std::string parent_folder(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

}  // namespace tessera
