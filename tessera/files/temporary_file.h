#pragma once
// A file on its way to its name. The name holds either the old content or the whole new one, also
// when the process is killed, the disk is full, or the machine loses power: the bytes go to a
// temporary file in the same folder, which is forced to the disk and then renamed.
//
//   .NAME.writing ──fsync──► rename to NAME ──► fsync of the folder
//
// A file that is never committed is removed. A killed process leaves one, which the next writer of
// that name uses again: they do not pile up. Two writers of one name at a time: the second is
// refused. A link stays a link, and the file behind it is replaced.
//
// This is for content that is not simply appended, or comes from many processes; for the rest there
// is write_file_atomically (atomic_file.h).
//
// Example:
//   TemporaryFile temporary("out/map.bin");
//   temporary.file().reserve(1 << 20);
//   temporary.file().write_at(row.data(), row.size(), offset);
//   temporary.commit();

#include <string>

#include "tessera/files/output_file.h"

namespace tessera {

class TemporaryFile {
 public:
  /// Empty. Throws InvalidInput where there can be no file of that name.
  explicit TemporaryFile(const std::string& path);
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile();

  OutputFile& file() { return file_; }
  /// Gives the file its name. Call it once. Throws InvalidInput where the disk fails.
  void commit();

  /// The name meanwhile, by which other processes find the file.
  static std::string name_for(const std::string& path);

 private:
  const std::string target_;
  const std::string name_;
  OutputFile file_;  // closed, and so unlocked, last
};

}  // namespace tessera
