#pragma once
// Calls of libpng, which leaves them by a jump where they fail. The jump must not pass an object
// with a destructor, so each call of it stands in a function of its own, with nothing but plain
// values; exceptions of our own callbacks wait meanwhile.
//
// Example:
//   if (!guarded_png_call(png, [&] { png_read_row(png, row, nullptr); })) complain(failure);

#include <png.h>

#include <array>
#include <csetjmp>
#include <cstring>
#include <exception>

namespace tessera {

/// Why calls failed; the error pointer of libpng's structs.
struct PngFailure {
  std::array<char, 200> complaint = {};    // libpng's words
  std::exception_ptr exception = nullptr;  // of a callback
};

inline void keep_png_error(png_structp png, png_const_charp message) {
  auto& failure = *static_cast<PngFailure*>(png_get_error_ptr(png));
  std::strncpy(failure.complaint.data(), message, failure.complaint.size() - 1);
  png_longjmp(png, 1);
}

inline void drop_png_warning(png_structp, png_const_charp) {}

/// Whether the call came back.
template <class Call>
bool guarded_png_call(png_structp png, const Call& call) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  call();
  return true;
}

/// The work of a callback. What it throws waits, and `words` become libpng's error, which jumps.
template <class Work>
void work_for_png(png_structp png, const char* words, const Work& work) {
  bool done = false;
  try {
    work();
    done = true;
  } catch (...) {
    static_cast<PngFailure*>(png_get_error_ptr(png))->exception = std::current_exception();
  }
  if (!done) png_error(png, words);  // not from within the catch
}

}  // namespace tessera
