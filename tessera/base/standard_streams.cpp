#include "tessera/base/standard_streams.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include "tessera/base/exit_code.h"

namespace tessera {
namespace {

std::atomic<int> first_error{0};

void note_error(int error_number) noexcept {
  int none = 0;
  if (error_number != EPIPE) first_error.compare_exchange_strong(none, error_number);
}

// A handler and not SIG_IGN: a program that we start would inherit that.
void let_the_write_fail(int) {}

}  // namespace

void prepare_standard_streams() {
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor)
    if (::fcntl(descriptor, F_GETFD) < 0) ::open("/dev/null", O_RDWR);  // takes the lowest number
  for (const int number : {SIGPIPE, SIGXFSZ}) {
    struct sigaction action = {};
    action.sa_handler = let_the_write_fail;
    action.sa_flags = SA_RESTART;
    ::sigaction(number, &action, nullptr);
  }
}

void write_out(std::string_view text) noexcept {
  if (std::fwrite(text.data(), 1, text.size(), stdout) < text.size()) note_error(errno);
}

void write_error(std::string_view text) noexcept {
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void flush_out() noexcept {
  if (std::fflush(stdout) != 0) note_error(errno);
}

int checked_exit_code(int exit_code) {
  flush_out();
  if (first_error == 0 || exit_code != kOk) return exit_code;
  print_error("tessera: [stdout] cannot be written: {}; send it to another file or pipe\n",
              std::generic_category().message(first_error));
  return kBadInput;
}

}  // namespace tessera
