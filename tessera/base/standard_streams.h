#pragma once
// What a program says: results on stdout, words on stderr. A result that cannot be written is an
// error, found once, at the end; words that nobody can read are not, so nothing here throws.
//
// A program calls prepare_standard_streams() first thing in main(), and ends with
// checked_exit_code(). Hosts that only call the library keep their signals as they are.
//
// Example:
//   print_out("{} samples -> {}\n", count, file);
//   return checked_exit_code(kOk);

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace tessera {

/// Descriptors 0 to 2 that are closed lead to the null device, so that no file that is opened later
/// gets what was meant for a stream. Signals of failed writes (SIGPIPE, SIGXFSZ) no longer end the
/// program: the write itself fails. Programs that this one starts have the system's way again.
void prepare_standard_streams();

void write_out(std::string_view text) noexcept;
void write_error(std::string_view text) noexcept;
/// Writes what is still in the buffer of stdout.
void flush_out() noexcept;

template <class... Args>
void print_out(fmt::format_string<Args...> format, Args&&... args) {
  write_out(fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
void print_error(fmt::format_string<Args...> format, Args&&... args) {
  write_error(fmt::format(format, std::forward<Args>(args)...));
}

/// The exit code of a program that would end with `exit_code`: what is still in the buffer is
/// written, and a success whose result cannot be read by anybody becomes kBadInput, with a word on
/// stderr. A reader that has closed its pipe has what it wanted (`| head -1`): that is a success.
int checked_exit_code(int exit_code);

}  // namespace tessera
