#include "tessera/cli/starved_start.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <string_view>

#include "tessera/base/exit_code.h"

namespace tessera::cli {
namespace {

void end_starved(std::string_view words) {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, words.data(), words.size());
  _exit(kOutOfMemory);
}

void handle(int number, void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action = {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO;
  sigaction(number, &action, nullptr);
}

void handle_start(int number, siginfo_t* info, void*) {
  if (info->si_code == SI_TKILL && info->si_pid == getpid())  // by the process itself
    end_starved(
        "tessera: [start] a library cannot have the threads or the memory that it needs; raise the "
        "limits (ulimit -u, ulimit -v)\n");
  signal(number, SIG_DFL);
  raise(number);
}

void handle_cpu_limit(int, siginfo_t*, void*) {
  end_starved("tessera: [time] the limit of CPU time (ulimit -t) is reached; raise it\n");
}

/// At the hard limit the system kills without a word; ours comes a second before.
void leave_time_for_a_word() {
  rlimit limit{};
  if (getrlimit(RLIMIT_CPU, &limit) != 0 || limit.rlim_max == RLIM_INFINITY) return;
  if (limit.rlim_cur < limit.rlim_max || limit.rlim_max < 2) return;
  limit.rlim_cur = limit.rlim_max - 1;
  setrlimit(RLIMIT_CPU, &limit);
}

bool is_limited(decltype(RLIMIT_AS) resource) {
  rlimit limit{};
  return getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

/// OpenBLAS starts a thread for every core while it is loaded, and each asks for a buffer until it
/// gets it: under a limit of memory some never do, and the program waits for them at its end. It
/// listens to its environment only, so the program begins again with another. Threads that are
/// wanted are started later, when there is room for them (runtime/claim_resources.h).
void begin_with_one_blas_thread(char** arguments, char** environment) {
  constexpr std::string_view kVariable = "OPENBLAS_NUM_THREADS=";
  static char setting[] = "OPENBLAS_NUM_THREADS=1";
  static std::array<char*, 16384> changed = {};
  if (!is_limited(RLIMIT_AS) && !is_limited(RLIMIT_DATA)) return;
  size_t size = 0;
  for (; environment[size] != nullptr; ++size) {
    if (size + 2 >= changed.size()) return;
    if (std::string_view(environment[size]).starts_with(kVariable)) return;
    changed[size] = environment[size];
  }
  changed[size] = setting;
  // By its own name, which others see in lists of processes.
  static std::array<char, 4096> path = {};
  if (readlink("/proc/self/exe", path.data(), path.size() - 1) > 0)
    execve(path.data(), arguments, changed.data());
}

void watch_start(int, char** arguments, char** environment) {
  begin_with_one_blas_thread(arguments, environment);
  handle(SIGINT, handle_start);
  handle(SIGABRT, handle_start);
}

/// Runs before anything of any library does. Only programs may have one.
[[gnu::section(".preinit_array"), gnu::used]] void (*const before_libraries)(int, char**,
                                                                             char**) = watch_start;

}  // namespace

void end_of_start() {
  signal(SIGINT, SIG_DFL);
  signal(SIGABRT, SIG_DFL);
  handle(SIGXCPU, handle_cpu_limit);
  leave_time_for_a_word();
}

}  // namespace tessera::cli
