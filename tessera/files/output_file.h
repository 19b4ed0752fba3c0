#pragma once
// A file that is being written: every short write is continued, every failure is an error with path
// and reason, and sync() returns only when the bytes are on the disk. Streams hide all three.
//
// All throw InvalidInput. write_at() and release() may be called by several threads at once; the
// rest may not.
//
// Example:
//   OutputFile file = OutputFile::create("out/notes.txt");
//   file.append("hello\n");
//   file.sync();

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tessera {

class OutputFile {
 public:
  /// A file that must not exist yet.
  static OutputFile create(const std::string& path);
  /// A file that another process has made, for write_at(). Not through a link, and not where the
  /// file has a second name: somebody else has laid it there then.
  static OutputFile join(const std::string& path);
  /// The same, for append() at its end, wherever that is at the time.
  static OutputFile append_to(const std::string& path);
  /// Takes an open descriptor over; `path` is the name in error messages.
  OutputFile(int descriptor, std::string path);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  void append(const void* data, size_t bytes);
  void append(std::string_view text) { append(text.data(), text.size()); }
  /// Writes over what is there, `offset` bytes from the begin.
  void write_at(const void* data, size_t bytes, int64_t offset);
  /// Makes an empty file `bytes` long, with room on the disk for all of it where the file system
  /// can promise that.
  void reserve(int64_t bytes);
  /// Makes an empty file `bytes` long without room on the disk: zeros, until they are written.
  void lengthen(int64_t bytes);
  /// Gives the room of a part back, where the file system can do that. It is zeros then, or stays.
  void release(int64_t offset, int64_t bytes);
  /// Forces what was written to the disk. Without it a crash of the machine may lose it.
  void sync();
  /// Appended so far.
  uint64_t bytes() const { return bytes_; }
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
  std::string path_;
  uint64_t bytes_ = 0;
};

}  // namespace tessera
