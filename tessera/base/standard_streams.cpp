#include "tessera/base/standard_streams.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>

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

int standard_output_error() noexcept {
  if (std::fflush(stdout) != 0) note_error(errno);
  return first_error;
}

}  // namespace tessera
