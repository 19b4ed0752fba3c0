#include "tessera/checkpoint/best_link.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "tessera/base/error.h"
#include "tessera/files/file_error.h"
#include "tessera/files/folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

std::string link_path(const std::string& folder) { return (fs::path(folder) / "best").string(); }
std::string link_on_its_way(const std::string& folder) {
  return (fs::path(folder) / ".writing-best").string();
}

bool is_link(const std::string& path) {
  std::error_code error;
  return fs::is_symlink(fs::symlink_status(path, error));
}

bool exists(const std::string& path) {
  std::error_code error;
  return fs::exists(fs::symlink_status(path, error));
}

}  // namespace

std::optional<CheckpointName> read_best_link(const std::string& folder) {
  std::error_code error;
  const fs::path target = fs::read_symlink(link_path(folder), error);
  return error ? std::nullopt : parse_checkpoint_name(target.string());
}

void write_best_link(const std::string& folder, const CheckpointName& name) {
  const std::string path = link_path(folder), temporary = link_on_its_way(folder);
  if (exists(path) && !is_link(path))
    throw_error<InvalidInput>("[checkpoint] {} is not a link; move it away", path);
  if (is_link(temporary)) ::unlink(temporary.c_str());  // of a killed run
  if (::symlink(to_string(name).c_str(), temporary.c_str()) != 0)
    throw_file_error("make the link", path, errno);
  rename_durably(temporary, path);
}

void remove_best_link(const std::string& folder) {
  if (is_link(link_path(folder))) ::unlink(link_path(folder).c_str());
}

}  // namespace tessera
