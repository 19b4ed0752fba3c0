#include "tessera/files/temporary_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "tessera/base/error.h"
#include "tessera/files/file_error.h"
#include "tessera/files/folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

// Where the bytes go in the end: behind a link, so that the link stays one. A rename over a device
// (/dev/null, by root) would replace the device.
std::string resolve_target(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  const bool is_link = fs::is_symlink(fs::symlink_status(path, error));
  if (!fs::exists(status)) {
    if (is_link)
      throw_error<InvalidInput>("[file] cannot write {}: it is a link to nowhere; remove it", path);
    return path;
  }
  if (!fs::is_regular_file(status))
    throw_error<InvalidInput>("[file] cannot write {}: it is {}; give the name of a file", path,
                              fs::is_directory(status) ? "a folder" : "not a regular file");
  if (!is_link) return path;
  const fs::path target = fs::canonical(path, error);
  if (error) throw_file_error("follow the link", path, error.value());
  return target.string();
}

std::string name_beside(const std::string& target) {
  const fs::path path(target);
  return (path.parent_path() / fmt::format(".{}.writing", path.filename().string())).string();
}

bool names_this_file(const std::string& path, int descriptor) {
  struct stat named, opened;
  return ::stat(path.c_str(), &named) == 0 && ::fstat(descriptor, &opened) == 0 &&
         named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
}

// The lock dies with the process, so a leftover is told from a file in use. Where the file system
// has no locks, callers are trusted not to write one name twice at a time.
int open_locked(const std::string& name, const std::string& path) {
  for (;;) {
    const int descriptor = ::open(name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (descriptor < 0) throw_file_error("create a file for", path, errno);
    if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      ::close(descriptor);
      throw_error<InvalidInput>(
          "[file] cannot write {}: another process is writing it; wait for it or give another name",
          path);
    }
    if (names_this_file(name, descriptor)) return descriptor;
    ::close(descriptor);  // its writer renamed it between our open and our lock
  }
}

}  // namespace

TemporaryFile::TemporaryFile(const std::string& path)
    : target_(resolve_target(path)),
      name_(name_beside(target_)),
      file_(open_locked(name_, path), path) {
  if (::ftruncate(file_.descriptor(), 0) != 0) throw_file_error("empty a leftover of", path, errno);
}

// After a rename the temporary name may already be another writer's.
TemporaryFile::~TemporaryFile() {
  if (names_this_file(name_, file_.descriptor())) ::unlink(name_.c_str());
}

void TemporaryFile::commit() {
  file_.sync();
  rename_durably(name_, target_);
}

std::string TemporaryFile::name_for(const std::string& path) {
  return name_beside(resolve_target(path));
}

}  // namespace tessera
