#include "tessera/files/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "tessera/files/file_error.h"

namespace tessera {
namespace {

// Some file systems know no fsync of a folder and say EINVAL: there is nothing more to be done
// there.
bool sync_failed(int descriptor) {
  int result = 0;
  do {
    result = ::fsync(descriptor);
  } while (result != 0 && errno == EINTR);
  return result != 0 && errno != EINVAL;
}

}  // namespace

OutputFile OutputFile::create(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) throw_file_error("create", path, errno);
  return OutputFile(descriptor, path);
}

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
  const char* next = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(descriptor_, next, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_file_error("write to", path_, errno);
    next += written;
    bytes -= static_cast<size_t>(written);
    bytes_ += static_cast<uint64_t>(written);
  }
}

void OutputFile::sync() {
  if (sync_failed(descriptor_)) throw_file_error("write to the disk of", path_, errno);
}

void sync_folder(const std::string& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) throw_file_error("open the folder", folder, errno);
  const bool failed = sync_failed(descriptor);
  const int error_number = errno;
  ::close(descriptor);
  if (failed) throw_file_error("write to the disk of", folder, error_number);
}

void rename_durably(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) throw_file_error("rename a new file to", to, errno);
  const std::string source = parent_folder(from), target = parent_folder(to);
  sync_folder(target);
  if (source != target) sync_folder(source);
}

std::string parent_folder(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

}  // namespace tessera
