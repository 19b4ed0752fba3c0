#pragma once
// Writes a file so that its name holds either the old content or the whole new one, whatever
// happens meanwhile; temporary_file.h says how.
//
// Throws InvalidInput with path, reason and remedy; nothing has changed then.
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
