#pragma once
// The records of a zip archive, as its directory lists them. The whole of the file must be that
// archive: records from the first byte on, one right after the other, then the directory, then its
// end, and nothing else. Readers of zip files differ in what they take from a file that is more, or
// less, than one archive, so that one may check what another never reads.
//
//   [record][record]...[record][directory][end of the directory]
//
// Nothing of a record is read but its header. The names are whole, whatever their length.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

struct ZipRecord {
  std::string name;
  int64_t offset = 0;       // of its header in the file
  int64_t stored_size = 0;  // of its bytes in the file
  int64_t size = 0;         // unpacked
};

/// In the order in which they lie in the file. Throws InvalidInput, saying what is wrong, unless
/// `file` is exactly one archive of plain files with names that differ, whatever their case.
std::vector<ZipRecord> read_zip_directory(std::string_view file);

}  // namespace tessera
