#include "tessera/files/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "tessera/base/error.h"
#include "tessera/files/file_error.h"

namespace tessera {
namespace {

struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

}  // namespace

MappedFile::MappedFile(const std::string& path) {
  // Not blocking: the open of a pipe would wait for a writer.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.number < 0) throw_file_error("open", path, errno);
  struct stat status;
  if (::fstat(file.number, &status) != 0) throw_file_error("read", path, errno);
  if (!S_ISREG(status.st_mode))
    throw_error<InvalidInput>("[file] cannot read {}: it is {}; give the name of a file", path,
                              S_ISDIR(status.st_mode) ? "a folder" : "not a regular file");
  size_ = static_cast<size_t>(status.st_size);
  if (size_ == 0) return;
  void* memory = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE, file.number, 0);
  if (memory == MAP_FAILED) throw_file_error("map", path, errno);
  data_ = static_cast<char*>(memory);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

}  // namespace tessera
