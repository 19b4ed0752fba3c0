#pragma once
// How a failed system call on a file becomes an error that the user can act on: what was tried, on
// which path, the system's reason, and a remedy where there is one.
//
// Example:
//   if (::rename(from, to) != 0) throw_file_error("rename a file to", to, errno);
//   // [file] cannot rename a file to out/w.safetensors: No space left on device; free some space
//   ...

#include <string>

namespace tessera {

/// Throws InvalidInput. `error_number` is the errno of the call.
[[noreturn]] void throw_file_error(const std::string& attempt, const std::string& path,
                                   int error_number);

}  // namespace tessera
