#pragma once
// The file that the ranks of an ArrayWriter write together: created by one, joined by the others.
//
// Formats whose pixels lie one after the other write into the file itself. The others write into a
// scratch file beside it, which has no other name and goes with its creator, and make the file of
// it when all are done.

#include <optional>
#include <string>

#include "tessera/files/temporary_file.h"
#include "tessera/geometry/box.h"
#include "tessera/images/flat_array.h"

namespace tessera {

class SharedOutput {
 public:
  enum class Space {
    kReserved,   // on the disk, for all of it
    kAsWritten,  // only for what is written
  };
  /// Joins the file of that temporary name; where that is empty, creates it, `bytes` long.
  SharedOutput(const std::string& path, const std::string& temporary, int64_t bytes,
               Space space = Space::kReserved);

  /// Where it lies until commit(). Only the creator.
  const std::string& temporary_name() const;
  /// The same, of either.
  const std::string& name() const { return name_; }
  OutputFile& file();
  /// Only the creator, once.
  void commit();

 private:
  const std::string path_;
  std::optional<TemporaryFile> created_;  // until it commits
  std::optional<OutputFile> joined_;
  std::string name_;
};

/// Where the pixels of `path` lie while it is written, if not in the file itself.
std::string scratch_path(const std::string& path);

/// Writes a dense box of an array that lies flat in a file.
void write_flat_box(OutputFile& file, const FlatLayout& layout, const Box& box, const void* dense);

}  // namespace tessera
