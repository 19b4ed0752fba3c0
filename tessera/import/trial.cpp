#include "tessera/import/trial.h"

#include <ATen/Parallel.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <fstream>

#include "tessera/base/error.h"

namespace tessera {
namespace {

// How a child ends. Its message is in the pipe.
enum Ending { kFine = 0, kInvalidInput = 11, kUnsupported = 12, kOther = 13 };

int64_t address_space() {
  std::ifstream file("/proc/self/statm");
  int64_t pages = 0;
  file >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

void limit(decltype(RLIMIT_AS) resource, int64_t amount) {
  const rlimit value{static_cast<rlim_t>(amount), static_cast<rlim_t>(amount)};
  setrlimit(resource, &value);
}

void say(int pipe, const char* words) {
  const size_t size = std::min<size_t>(std::strlen(words), 16384);
  [[maybe_unused]] const ssize_t written = write(pipe, words, size);
}

[[noreturn]] void run_child(int pipe, const TrialLimits& limits,
                            const std::function<void()>& body) {
  limit(RLIMIT_AS, address_space() + limits.memory_bytes);
  limit(RLIMIT_CPU, limits.cpu_seconds);
  limit(RLIMIT_CORE, 0);
  const int nowhere = open("/dev/null", O_WRONLY);
  dup2(nowhere, STDOUT_FILENO);
  dup2(nowhere, STDERR_FILENO);
  // Threads of the parent do not exist here: a parallel loop would wait for them.
  at::set_num_threads(1);
  Ending ending = kFine;
  try {
    body();
  } catch (const Unsupported& error) {
    say(pipe, error.what());
    ending = kUnsupported;
  } catch (const InvalidInput& error) {
    say(pipe, error.what());
    ending = kInvalidInput;
  } catch (const std::exception& error) {
    say(pipe, error.what());
    ending = kOther;
  }
  _exit(ending);
}

std::string read_all(int pipe) {
  std::string words;
  char buffer[4096];
  for (ssize_t size; (size = read(pipe, buffer, sizeof(buffer))) > 0;) words.append(buffer, size);
  return words;
}

}  // namespace

void try_in_child(const std::string& subject, const TrialLimits& limits,
                  const std::function<void()>& body) {
  int ends[2];
  if (pipe(ends) != 0) throw_error<InternalError>("[{}] no pipe: {}", subject, strerror(errno));
  const pid_t child = fork();
  if (child < 0) throw_error<InternalError>("[{}] no child process: {}", subject, strerror(errno));
  if (child == 0) {
    close(ends[0]);
    run_child(ends[1], limits, body);
  }
  close(ends[1]);
  const std::string words = read_all(ends[0]);
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status))
    throw_error<InvalidInput>(
        "[{}] the reader {} (signal {}); the file is damaged or hostile", subject,
        WTERMSIG(status) == SIGXCPU
            ? fmt::format("was stopped after {} CPU seconds", limits.cpu_seconds)
            : fmt::format("crashed, with {} GiB at hand", limits.memory_bytes >> 30),
        WTERMSIG(status));
  switch (WEXITSTATUS(status)) {
    case kFine:
      return;
    case kUnsupported:
      throw Unsupported(words);
    case kInvalidInput:
      throw InvalidInput(words);
    default:
      throw_error<InvalidInput>(
          "[{}] cannot be read: {}", subject,
          words.empty() ? "the reader gave up" : words.substr(0, words.find('\n')));
  }
}

}  // namespace tessera
