#include "tessera/files/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "tessera/base/error.h"

namespace tessera {
namespace {

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

const char* reading_remedy(int error_number) {
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
      return "; check the path";
    case EACCES:
    case EPERM:
      return "; give a file that you may read";
    case ELOOP:
      return "; its links lead to each other: give a file";
    case EMFILE:
    case ENFILE:
      return "; raise the limit on open files (ulimit -n)";
    default:
      return "; give a regular file";
  }
}

[[noreturn]] void refuse_reading(const std::string& place, const std::string& path,
                                 int error_number) {
  throw_error<InvalidInput>("[{}] cannot read {}: {}{}", place, path,
                            std::generic_category().message(error_number),
                            reading_remedy(error_number));
}

}  // namespace

InputFile::InputFile(std::string path, std::string place)
    : path_(std::move(path)), place_(std::move(place)) {
  // Without O_NONBLOCK the open of a pipe would wait for a writer.
  const int descriptor = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  const int error_number = errno;
  struct stat status {};
  // A socket cannot be opened at all; what it is says more than the system's reason.
  if ((descriptor >= 0 ? ::fstat(descriptor, &status) : ::stat(path_.c_str(), &status)) == 0 &&
      !S_ISREG(status.st_mode)) {
    if (descriptor >= 0) ::close(descriptor);
    throw_error<InvalidInput>(
        "[{}] cannot read {}: it is {}; {}", place_, path_, kind_of(status.st_mode),
        S_ISFIFO(status.st_mode) ? "write what comes through it to a regular file first"
                                 : "give a regular file");
  }
  if (descriptor < 0) refuse_reading(place_, path_, error_number);
  descriptor_ = descriptor;
  size_ = static_cast<uint64_t>(status.st_size);
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)),
      place_(std::move(other.place_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_) {}

InputFile::~InputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void InputFile::read_at(uint64_t offset, void* to, size_t bytes) const {
  char* next = static_cast<char*>(to);
  for (size_t done = 0; done < bytes;) {
    const ssize_t got =
        ::pread(descriptor_, next + done, bytes - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse_reading(place_, path_, errno);
    if (got == 0)
      throw_error<InvalidInput>(
          "[{}] {} is shorter than it was: it had {} bytes when it was opened and ends before byte "
          "{} now; leave files alone while they are read, or replace them by a rename",
          place_, path_, size_, offset + bytes);
    done += static_cast<size_t>(got);
  }
}

}  // namespace tessera
