#pragma once
// A file that is being written: every short write is continued, every failure is an error with path
// and reason, and sync() returns only when the bytes are on the disk. Streams hide all three.
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
  /// Takes an open descriptor over; `path` is the name in error messages.
  OutputFile(int descriptor, std::string path);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  void append(const void* data, size_t bytes);
  void append(std::string_view text) { append(text.data(), text.size()); }
  /// Forces what was appended to the disk. Without it a crash of the machine may lose it.
  void sync();
  /// Appended so far.
  uint64_t bytes() const { return bytes_; }

 private:
  int descriptor_;
  std::string path_;
  uint64_t bytes_ = 0;
};

/// Forces the names in a folder to the disk: files made, renamed or removed in it.
void sync_folder(const std::string& folder);

/// Renames within one file system and forces both folders to the disk. Replaces a file at `to`.
void rename_durably(const std::string& from, const std::string& to);

/// The folder that holds `path`: "." where it names none.
std::string parent_folder(const std::string& path);

}  // namespace tessera
