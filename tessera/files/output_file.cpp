#include "tessera/files/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/files/file_error.h"

namespace tessera {
namespace {

// Calls `write(data, bytes, done)`, which is write() or pwrite(), until all is written.
template <class Write>
void write_all(const void* data, size_t bytes, const std::string& path, const Write& write) {
  for (size_t done = 0; done < bytes;) {
    const ssize_t written = write(static_cast<const char*>(data) + done, bytes - done, done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_file_error("write to", path, errno);
    done += static_cast<size_t>(written);
  }
}

// Not blocking: the open of a pipe would wait for a reader.
OutputFile open_existing(const std::string& path, int flags) {
  const int descriptor =
      ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | flags);
  if (descriptor < 0) throw_file_error("open", path, errno);
  OutputFile file(descriptor, path);
  struct stat status;
  if (::fstat(descriptor, &status) != 0) throw_file_error("open", path, errno);
  if (!S_ISREG(status.st_mode) || status.st_nlink != 1)
    throw_error<InvalidInput>(
        "[file] cannot write into {}: it is not a regular file with one name; write to a folder "
        "that nobody else changes",
        path);
  return file;
}

}  // namespace

OutputFile OutputFile::create(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_CREAT | O_EXCL, 0666);
  if (descriptor < 0) throw_file_error("create", path, errno);
  return OutputFile(descriptor, path);
}

OutputFile OutputFile::join(const std::string& path) { return open_existing(path, 0); }

OutputFile OutputFile::append_to(const std::string& path) { return open_existing(path, O_APPEND); }

OutputFile::OutputFile(int descriptor, std::string path)
    : descriptor_(descriptor), path_(std::move(path)) {}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      path_(std::move(other.path_)),
      bytes_(other.bytes_) {}

// Errors of close() are those of data not yet on the disk, which sync() has reported already.
OutputFile::~OutputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void OutputFile::append(const void* data, size_t bytes) {
  write_all(data, bytes, path_, [&](const char* next, size_t left, size_t) {
    return ::write(descriptor_, next, left);
  });
  bytes_ += bytes;
}

void OutputFile::write_at(const void* data, size_t bytes, int64_t offset) {
  write_all(data, bytes, path_, [&](const char* next, size_t left, size_t done) {
    return ::pwrite(descriptor_, next, left, offset + static_cast<int64_t>(done));
  });
}

// Asks first, since reserving on a disk that is too small would fill it before it fails.
void OutputFile::reserve(int64_t bytes) {
  struct statvfs disk;
  if (::fstatvfs(descriptor_, &disk) == 0 && disk.f_blocks > 0 &&
      static_cast<uint64_t>(bytes) / disk.f_frsize > disk.f_bavail)
    throw_error<InvalidInput>(
        "[file] cannot write {}: it needs {} bytes, the disk has {} free; free some space or "
        "choose another folder",
        path_, bytes, disk.f_bavail * disk.f_frsize);
  const int error = ::posix_fallocate(descriptor_, 0, bytes);
  if (error == 0) return;
  // A file system that cannot reserve reports a full disk when it is written to instead.
  if (error != EOPNOTSUPP && error != EINVAL) throw_file_error("reserve space for", path_, error);
  lengthen(bytes);
}

void OutputFile::lengthen(int64_t bytes) {
  if (::ftruncate(descriptor_, bytes) != 0) throw_file_error("lengthen", path_, errno);
}

void OutputFile::release(int64_t offset, int64_t bytes) {
  if (bytes > 0)
    ::fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, bytes);
}

// EINVAL and EROFS: the file system has no fsync, of folders mostly, and there is nothing more to
// be done.
void OutputFile::sync() {
  int result = 0;
  do {
    result = ::fsync(descriptor_);
  } while (result != 0 && errno == EINTR);
  if (result != 0 && errno != EINVAL && errno != EROFS)
    throw_file_error("write to the disk of", path_, errno);
}

}  // namespace tessera
