#include "tessera/files/temporary_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <thread>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/files/file_error.h"
#include "tessera/files/folder.h"
#include "tessera/files/temporary_name.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

// A rename over a device (/dev/null, by root) would replace the device.
void refuse_unless_regular(const std::string& path, const fs::file_status& status) {
  if (fs::is_regular_file(status)) return;
  throw_error<InvalidInput>("[file] cannot write {}: it is {}; give the name of a file", path,
                            fs::is_directory(status) ? "a folder" : "not a regular file");
}

// Where the bytes go in the end: where a link leads, so that the link stays one.
std::string resolve_target(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  const bool is_link = fs::is_symlink(fs::symlink_status(path, error));
  if (!fs::exists(status)) {
    if (is_link)
      throw_error<InvalidInput>("[file] cannot write {}: it is a link to nowhere; remove it", path);
    return path;
  }
  refuse_unless_regular(path, status);
  if (!is_link) return path;
  const fs::path target = fs::canonical(path, error);
  if (error) throw_file_error("follow the link", path, error.value());
  return target.string();
}

bool names_this_file(const std::string& path, int descriptor) {
  struct stat named, opened;
  return ::lstat(path.c_str(), &named) == 0 && ::fstat(descriptor, &opened) == 0 &&
         named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
}

enum class Lock { kTaken, kBusy, kUnknown };

// The lock dies with the process, so a leftover is told from a file in use. Where the file system
// has no locks, callers are trusted not to write one name twice at a time.
Lock try_lock(int descriptor) {
  if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) return Lock::kTaken;
  return errno == EWOULDBLOCK ? Lock::kBusy : Lock::kUnknown;
}

/// Only what a writer of ours can have made: links, pipes and the files of others stay as they are.
std::optional<OutputFile> open_leftover(const std::string& name) {
  const int descriptor = ::open(name.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (descriptor < 0) return std::nullopt;
  OutputFile file(descriptor, name);
  struct stat status;
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink != 1 ||
      status.st_uid != ::geteuid())
    return std::nullopt;
  return file;
}

/// Removes the leftovers of killed writers of the target; false where another writer lives.
bool is_alone(const std::string& target, const std::string& own_name) {
  for (const std::string& name : temporary_names_of(target)) {
    if (fs::path(name).filename() == fs::path(own_name).filename()) continue;
    const std::optional<OutputFile> other = open_leftover(name);
    if (!other) continue;
    const Lock lock = try_lock(other->descriptor());
    if (lock == Lock::kBusy) return false;
    if (lock == Lock::kTaken && names_this_file(name, other->descriptor())) ::unlink(name.c_str());
  }
  return true;
}

}  // namespace

// Two writers that begin at the same moment see each other. Each then takes its file back and looks
// again a little later, at moments that differ, so that one of them finds itself alone.
TemporaryFile::Created TemporaryFile::create_alone(const std::string& target,
                                                   const std::string& path) {
  constexpr int kAttempts = 8;
  for (int attempt = 1;; ++attempt) {
    const std::string name = new_temporary_name(target);
    const int descriptor =
        ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (descriptor < 0) throw_file_error("create a file for", path, errno);
    OutputFile file(descriptor, path);
    // A file that is busy or gone though it is new was taken for a leftover, by a writer who is
    // there.
    if (try_lock(descriptor) != Lock::kBusy && names_this_file(name, descriptor) &&
        is_alone(target, name))
      return {name, std::move(file)};
    ::unlink(name.c_str());
    if (attempt == kAttempts)
      throw_error<InvalidInput>(
          "[file] cannot write {}: another process is writing it; wait for it or give another name",
          path);
    const auto moment = static_cast<int64_t>(std::hash<std::string>()(name) % 30'000);
    std::this_thread::sleep_for(std::chrono::microseconds(moment));
  }
}

TemporaryFile::TemporaryFile(const std::string& path)
    : path_(path), target_(resolve_target(path)), created_(create_alone(target_, path)) {}

// After a rename the name is free, and may already be taken again.
TemporaryFile::~TemporaryFile() {
  if (names_this_file(name(), file().descriptor())) ::unlink(name().c_str());
}

void TemporaryFile::commit() {
  file().sync();
  if (!names_this_file(name(), file().descriptor()))
    throw_error<InvalidInput>(
        "[file] cannot write {}: its temporary file {} was removed or replaced meanwhile; write to "
        "a folder that nobody else changes",
        path_, name());
  std::error_code error;
  const fs::file_status status = fs::symlink_status(target_, error);
  if (fs::exists(status)) refuse_unless_regular(path_, status);
  rename_durably(name(), target_);
}

}  // namespace tessera
