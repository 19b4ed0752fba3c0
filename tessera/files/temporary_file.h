#pragma once
// A file on its way to its name. The name holds either the old content or the whole new one, also
// when the process is killed, the disk is full, or the machine loses power: the bytes go to a
// temporary file in the same folder, which is forced to the disk and then renamed.
//
//   .NAME.<random>.writing ──fsync──► rename to NAME ──► fsync of the folder
//
// What others have laid in the folder is never opened, followed or replaced: the temporary file is
// always a new one, and the rename only replaces a regular file. A link stays a link, and the file
// that it leads to is replaced.
//
// A file that is never committed is removed. A killed process leaves one, which the next writer of
// that name removes: they do not pile up. Two writers of one name at a time: the second is refused.
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

  OutputFile& file() { return created_.file; }
  /// Gives the file its name. Call it once. Throws InvalidInput where the disk fails. The file may
  /// be written further, under its name then.
  void commit();

  /// The name meanwhile, by which other processes open the file (OutputFile::join).
  const std::string& name() const { return created_.name; }

 private:
  struct Created {
    std::string name;
    OutputFile file;  // closed, and so unlocked, last
  };
  static Created create_alone(const std::string& target, const std::string& path);

  const std::string path_;
  const std::string target_;
  Created created_;
};

}  // namespace tessera
