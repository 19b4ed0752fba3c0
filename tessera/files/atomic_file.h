#pragma once
// Writes a file so that its name holds either the old content or the whole new one, also when the
// process is killed, the disk is full, or the machine loses power: the bytes go to a temporary file
// in the same folder, which is forced to the disk and then renamed.
//
//   .NAME.writing ──fsync──► rename to NAME ──► fsync of the folder
//
// Throws InvalidInput with path and reason; the temporary file is removed then. A killed process
// leaves one, which the next write of that name uses again: they do not pile up. Two writers of one
// name at a time: the second is refused.
//
// Example:
//   write_file_atomically("run/run.json", text);

#include <functional>
#include <string>
#include <string_view>

#include "tessera/files/output_file.h"

namespace tessera {

/// `fill` appends the content. Where it throws, nothing has changed.
void write_file_atomically(const std::string& path, const std::function<void(OutputFile&)>& fill);
void write_file_atomically(const std::string& path, std::string_view content);

}  // namespace tessera
