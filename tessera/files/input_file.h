#pragma once
// A file that a user names and that Tessera reads. Nothing about it is believed: it may be a pipe
// that nobody writes to, a device without end, or shrink while it is read.
//
// Only regular files are opened, so neither opening nor reading ever waits for somebody else. Bytes
// are read by position and counted. They are not mapped, because the system answers a mapping of a
// file that has shrunk with SIGBUS, which ends the process without a word.
//
// All throw InvalidInput that names the file and begins with [place], the option or format that it
// was named for. Reading is const and thread-safe.
//
// Example:
//   const InputFile file("w.safetensors", "safetensors");
//   uint64_t length;
//   file.read_at(0, &length, sizeof(length));

#include <cstddef>
#include <cstdint>
#include <string>

namespace tessera {

class InputFile {
 public:
  InputFile(std::string path, std::string place);
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&& other) = delete;
  ~InputFile();

  const std::string& path() const { return path_; }
  /// The bytes that it had when it was opened.
  uint64_t size() const { return size_; }
  int descriptor() const { return descriptor_; }
  /// Throws where the file ends before, because it is shorter than it was.
  void read_at(uint64_t offset, void* to, size_t bytes) const;

 private:
  std::string path_;
  std::string place_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

}  // namespace tessera
