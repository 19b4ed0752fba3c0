#include "tessera/files/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "tessera/base/error.h"
#include "tessera/files/file_error.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

// Where the bytes go in the end: behind a link, so that the link stays one. A rename over a device
// (/dev/null, by root) would replace the device.
fs::path resolve_target(const std::string& path) {
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
  const fs::path target = is_link ? fs::canonical(path, error) : fs::path(path);
  if (error) throw_file_error("follow the link", path, error.value());
  return target;
}

bool names_this_file(const std::string& path, int descriptor) {
  struct stat named, opened;
  return ::stat(path.c_str(), &named) == 0 && ::fstat(descriptor, &opened) == 0 &&
         named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
}

// The lock dies with the process, so a leftover is told from a file in use. Where the file system
// has no locks, callers are trusted not to write one name twice at a time.
int open_locked(const std::string& temporary, const std::string& target) {
  for (;;) {
    const int descriptor =
        ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (descriptor < 0) throw_file_error("create a file for", target, errno);
    if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      ::close(descriptor);
      throw_error<InvalidInput>(
          "[file] cannot write {}: another process is writing it; give each run its own folder",
          target);
    }
    if (names_this_file(temporary, descriptor)) return descriptor;
    ::close(descriptor);  // its writer renamed it between our open and our lock
  }
}

}  // namespace

void write_file_atomically(const std::string& path, const std::function<void(OutputFile&)>& fill) {
  const fs::path target = resolve_target(path);
  const std::string name = fmt::format(".{}.writing", target.filename().string());
  const std::string temporary = (target.parent_path() / name).string();
  const int descriptor = open_locked(temporary, path);
  OutputFile file(descriptor, path);  // closed, and so unlocked, only after the rename
  try {
    if (::ftruncate(descriptor, 0) != 0) throw_file_error("empty a leftover of", path, errno);
    fill(file);
    file.sync();
    rename_durably(temporary, target.string());
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
}

void write_file_atomically(const std::string& path, std::string_view content) {
  write_file_atomically(path, [&](OutputFile& file) { file.append(content); });
}

}  // namespace tessera
