#include "tessera/import/closed_child.h"

#include <ATen/Parallel.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <optional>
#include <thread>

#include "tessera/base/error.h"
#include "tessera/base/free_memory.h"
#include "tessera/import/system_filter.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

// How a child ends. Its words are in the second pipe.
enum Ending { kFine = 0, kInvalidInput = 11, kUnsupported = 12, kOther = 13, kNotClosed = 14 };

constexpr int kAnswer = 3, kWords = 4;  // the child's descriptors
constexpr size_t kMostWords = 16384;    // fits a pipe, so that nobody waits

void limit(decltype(RLIMIT_AS) resource, int64_t amount) {
  const rlimit value{static_cast<rlim_t>(amount), static_cast<rlim_t>(amount)};
  setrlimit(resource, &value);
}

void send_all(int pipe, const void* data, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    const ssize_t written = write(pipe, static_cast<const char*>(data) + done, bytes - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) _exit(kOther);  // nobody listens any more
    done += static_cast<size_t>(written);
  }
}

/// The child has nothing open but its two pipes: what this process has open is not its business.
void keep_only(int answer, int words) {
  // Out of the way of the places that they will have.
  const int high_answer = fcntl(answer, F_DUPFD, 10), high_words = fcntl(words, F_DUPFD, 10);
  const int nowhere = open("/dev/null", O_RDWR);
  for (int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(nowhere, standard);
  dup2(high_answer, kAnswer);
  dup2(high_words, kWords);
#ifdef SYS_close_range
  if (syscall(SYS_close_range, kWords + 1, ~0u, 0) == 0) return;
#endif
  rlimit most{};
  getrlimit(RLIMIT_NOFILE, &most);
  const int last = static_cast<int>(std::min<rlim_t>(most.rlim_cur, 1 << 16));
  for (int descriptor = kWords + 1; descriptor < last; ++descriptor) close(descriptor);
}

Ending run_work(const std::function<void(const SendBytes&)>& work) {
  const auto say = [](const char* words) {
    send_all(kWords, words, std::min(std::strlen(words), kMostWords));
  };
  try {
    work([](const void* data, size_t bytes) { send_all(kAnswer, data, bytes); });
    return kFine;
  } catch (const Unsupported& error) {
    say(error.what());
    return kUnsupported;
  } catch (const InvalidInput& error) {
    say(error.what());
    return kInvalidInput;
  } catch (const std::bad_alloc&) {
    say("it takes more memory than a model file may");
  } catch (const std::exception& error) {
    say(error.what());
  }
  return kOther;
}

[[noreturn]] void run_child(int answer, int words, pid_t parent, const ChildLimits& limits,
                            WithoutFilter without_filter,
                            const std::function<void(const SendBytes&)>& work) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kOther);  // it died before that
  for (int number : {SIGINT, SIGTERM, SIGSEGV, SIGBUS, SIGABRT, SIGSYS, SIGXCPU})
    signal(number, SIG_DFL);
  signal(SIGPIPE, SIG_IGN);
  keep_only(answer, words);
  limit(RLIMIT_AS, address_space() + limits.memory_bytes);
  limit(RLIMIT_CPU, limits.cpu_seconds);
  limit(RLIMIT_CORE, 0);
  // Threads of the parent do not exist here: a parallel loop would wait for them.
  at::set_num_threads(1);
  if (!close_in({kAnswer, kWords}) && without_filter == WithoutFilter::kRefuse) _exit(kNotClosed);
  _exit(run_work(work));
}

/// A child that is ended and waited for, whatever happens here.
class Child {
 public:
  Child(pid_t pid, Clock::time_point deadline) : pid_(pid), deadline_(deadline) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid_ > 0) end();
  }

  /// How it ended; none where it had to be ended.
  std::optional<int> wait() {
    int status = 0;
    for (;;) {
      const pid_t ended = waitpid(pid_, &status, WNOHANG);
      if (ended == pid_ || (ended < 0 && errno == ECHILD)) {
        pid_ = 0;
        return status;
      }
      if (Clock::now() > deadline_) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    end();
    return std::nullopt;
  }
  void end() {
    kill(pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
  }

 private:
  pid_t pid_;
  Clock::time_point deadline_;
};

struct Pipe {
  int ends[2] = {-1, -1};
  explicit Pipe(const std::string& subject) {
    if (pipe2(ends, O_CLOEXEC) != 0)
      throw_error<OutOfMemory>("[{}] cannot be read: no pipe to a process of its own: {}", subject,
                               strerror(errno));
  }
  ~Pipe() {
    for (int end : ends)
      if (end >= 0) close(end);
  }
  void close_writing() { close(std::exchange(ends[1], -1)); }
};

std::string read_words(int pipe, Clock::time_point deadline) {
  ChildAnswer answer(pipe, deadline);
  std::string words(kMostWords, '\0');
  size_t size = 0;
  while (size < words.size()) {
    const size_t more = answer.read_some(words.data() + size, words.size() - size);
    if (more == 0) break;
    size += more;
  }
  words.resize(size);
  return words;
}

[[noreturn]] void throw_too_slow(const std::string& subject, const ChildLimits& limits) {
  throw_error<InvalidInput>(
      "[{}] the reader was stopped after {} seconds; the file is damaged or hostile, or the "
      "machine "
      "has no time for it",
      subject, limits.wall_seconds);
}

[[noreturn]] void throw_signal(const std::string& subject, int number, const ChildLimits& limits) {
  if (number == SIGSYS)
    throw_error<InvalidInput>(
        "[{}] holds code that tried to change a file, reach the network, start a program or touch "
        "another process while it was read; the reader was stopped, nothing has changed. Do not "
        "trust this file",
        subject);
  throw_error<InvalidInput>(
      "[{}] the reader {} (signal {}); the file is damaged or hostile", subject,
      number == SIGXCPU || number == SIGKILL
          ? fmt::format("was stopped after {} CPU seconds", limits.cpu_seconds)
          : fmt::format("crashed, with {} GiB at hand", limits.memory_bytes >> 30),
      number);
}

/// Returns where all went well.
void check_ending(const std::string& subject, int status, const std::string& words,
                  const ChildLimits& limits) {
  if (WIFSIGNALED(status)) throw_signal(subject, WTERMSIG(status), limits);
  switch (WEXITSTATUS(status)) {
    case kFine:
      return;
    case kUnsupported:
      throw Unsupported(words);
    case kInvalidInput:
      throw InvalidInput(words);
    case kNotClosed:
      throw_error<InvalidInput>(
          "[{}] this system cannot close in the process that reads a model file (it has no seccomp "
          "filters), so code in the file could do harm; if you trust the file, give --trust-model",
          subject);
    default:
      throw_error<InvalidInput>(
          "[{}] cannot be read: {}", subject,
          words.empty() ? "the reader gave up" : words.substr(0, words.find('\n')));
  }
}

/// A deadline passed: not the answer's fault.
struct TooSlow : InvalidInput {
  TooSlow() : InvalidInput("too slow") {}
};

}  // namespace

size_t ChildAnswer::read_some(void* data, size_t bytes) {
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - Clock::now()).count();
    if (left <= 0) throw TooSlow();
    pollfd wait{descriptor_, POLLIN, 0};
    const int ready = poll(&wait, 1, static_cast<int>(std::min<int64_t>(left, 60'000)));
    if (ready < 0 && errno != EINTR) return 0;
    if (ready <= 0) continue;
    const ssize_t got = read(descriptor_, data, bytes);
    if (got < 0 && errno == EINTR) continue;
    return got < 0 ? 0 : static_cast<size_t>(got);
  }
}

void ask_closed_child(const std::string& subject, const ChildLimits& limits,
                      WithoutFilter without_filter,
                      const std::function<void(const SendBytes&)>& work,
                      const std::function<void(ChildAnswer&)>& receive) {
  Pipe answer(subject), words(subject);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0)
    throw_error<OutOfMemory>("[{}] cannot be read: no process of its own: {}", subject,
                             strerror(errno));
  if (pid == 0) run_child(answer.ends[1], words.ends[1], parent, limits, without_filter, work);
  const auto deadline = Clock::now() + std::chrono::seconds(limits.wall_seconds);
  Child child(pid, deadline);
  answer.close_writing();
  words.close_writing();
  ChildAnswer received(answer.ends[0], deadline);
  std::string not_taken;  // why the answer was not
  try {
    receive(received);
  } catch (const TooSlow&) {
    throw_too_slow(subject, limits);
  } catch (const OutOfMemory&) {
    throw;
  } catch (const std::exception& error) {
    not_taken = error.what();
  }
  try {
    char rest[4096];
    while (received.read_some(rest, sizeof(rest)) > 0)
      if (not_taken.empty()) not_taken = "it goes on after its end";
    const std::string said = read_words(words.ends[0], deadline);
    const std::optional<int> status = child.wait();
    if (!status) throw TooSlow();
    check_ending(subject, *status, said, limits);
  } catch (const TooSlow&) {
    throw_too_slow(subject, limits);
  }
  if (!not_taken.empty())
    throw_error<InvalidInput>("[{}] its reader gave an answer that does not hold together ({})",
                              subject, not_taken);
}

}  // namespace tessera
