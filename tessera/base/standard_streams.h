#pragma once
// What a program says: results on stdout, words on stderr. A result that cannot be written is an
// error, found once, at the end; words that nobody can read are not, so nothing here throws.
//
// A program calls prepare_standard_streams() first thing in main(), and asks
// standard_output_error() last. Hosts that only call the library keep their signals as they are.
//
// Example:
//   print_out("{} samples -> {}\n", count, file);
//   if (const int error = standard_output_error()) print_error("cannot write: {}\n", error);

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

template <class... Args>
void print_out(fmt::format_string<Args...> format, Args&&... args) {
  write_out(fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
void print_error(fmt::format_string<Args...> format, Args&&... args) {
  write_error(fmt::format(format, std::forward<Args>(args)...));
}

/// Writes what is still in the buffer. The errno of the first write to stdout that failed, or 0. A
/// reader that has closed its pipe has what it wanted (`| head -1`): that is not a failure.
int standard_output_error() noexcept;

}  // namespace tessera
