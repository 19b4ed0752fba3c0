#pragma once
// What LibTorch throws, as errors of ours: a device's memory that is full and a GPU that has failed
// are no bugs, and there is something that users can do. The first are told by their type, the
// others by their words, for which LibTorch had no type before 2.9.
//
// Example:
//   with_our_errors("", [&] { body(transport); });

#include <c10/util/Exception.h>

#include <string>

namespace tessera {

/// `place` is what was being done, as messages begin: "conv2d enc1.0"; empty: nobody knows.
/// Throws OutOfMemory; CommError where a GPU has failed, after which its process cannot go on with
/// it; Unsupported where the build has no kernels for a GPU; else InternalError.
[[noreturn]] void throw_as_ours(const c10::Error& error, const std::string& place);

template <class Work>
void with_our_errors(const std::string& place, const Work& work) {
  try {
    work();
  } catch (const c10::Error& error) {
    throw_as_ours(error, place);
  }
}

}  // namespace tessera
