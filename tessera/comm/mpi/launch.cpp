#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "tessera/base/error.h"
#include "tessera/base/standard_streams.h"
#include "tessera/comm/mpi/batch.h"
#include "tessera/comm/mpi/mpi.h"
#include "tessera/comm/mpi/verdict.h"

namespace tessera::mpi {
namespace {

std::atomic<int> num_signals{0};
std::atomic<int> last_signal{0};

/// While it lives, SIGINT and SIGTERM are noted and not acted upon.
class NotedSignals {
 public:
  NotedSignals() {
    num_signals = 0;
    struct sigaction action = {};
    action.sa_handler = [](int signal) {
      last_signal = signal;
      ++num_signals;
    };
    sigaction(SIGINT, &action, &interrupt_);
    sigaction(SIGTERM, &action, &terminate_);
  }
  ~NotedSignals() {
    sigaction(SIGINT, &interrupt_, nullptr);
    sigaction(SIGTERM, &terminate_, nullptr);
  }

 private:
  struct sigaction interrupt_ = {}, terminate_ = {};
};

class RecordFolder {
 public:
  RecordFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "tessera-ranks-XXXXXX").string();
    if (!mkdtemp(name.data()))
      throw_error<InvalidInput>("[launch] cannot make the folder {}: {}", name,
                                std::strerror(errno));
    path_ = name;
  }
  ~RecordFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::vector<std::string> command_line(int ranks, const std::vector<std::string>& command,
                                      const LaunchOptions& options, const std::string& folder) {
  std::vector<std::string> words = {options.mpirun,
                                    "--allow-run-as-root",
                                    "--oversubscribe",
                                    "--bind-to",
                                    "none",
                                    "-x",
                                    fmt::format("{}={}", kRecordFolderVariable, folder),
                                    "-n",
                                    std::to_string(ranks)};
  words.insert(words.end(), options.mpirun_options.begin(), options.mpirun_options.end());
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

/// In the child. In a process group of its own, so that Ctrl-C reaches the ranks through us only:
/// mpirun would give them a second to live. Without a terminal to read from, which would stop it.
[[noreturn]] void become(char* const* words, int stdout_pipe, int stderr_pipe, int error_pipe) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  dup2(stdout_pipe, STDOUT_FILENO);
  dup2(stderr_pipe, STDERR_FILENO);
  const int nothing = open("/dev/null", O_RDONLY);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  execvp(words[0], words);
  const int error = errno;
  [[maybe_unused]] const ssize_t written = write(error_pipe, &error, sizeof(error));
  _exit(127);
}

/// The reading end of a pipe.
struct Source {
  int descriptor = -1;
  bool ended = false;

  /// What there is, in parts, without waiting for more.
  template <class Take>
  void read_all(const Take& take) {
    char buffer[4096];
    ssize_t count = 0;
    while ((count = read(descriptor, buffer, sizeof(buffer))) > 0)
      take(std::string_view(buffer, static_cast<size_t>(count)));
    ended = count == 0;
  }
};

class Mpirun {
 public:
  explicit Mpirun(std::vector<std::string> words) {
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    int errors[2], results[2], remarks[2];
    if (pipe2(errors, O_CLOEXEC) != 0 || pipe2(results, O_CLOEXEC) != 0 ||
        pipe2(remarks, O_CLOEXEC) != 0)
      throw_error<InvalidInput>("[launch] cannot make a pipe: {}", std::strerror(errno));
    pid_ = fork();
    if (pid_ == 0) become(pointers.data(), results[1], remarks[1], errors[1]);
    for (const int end : {errors[1], results[1], remarks[1]}) close(end);
    results_.descriptor = results[0];
    remarks_.descriptor = remarks[0];
    for (const int end : {results[0], remarks[0]}) fcntl(end, F_SETFL, O_NONBLOCK);
    int error = pid_ < 0 ? errno : 0;
    ssize_t heard = 0;
    do heard = pid_ > 0 ? read(errors[0], &error, sizeof(error)) : 0;
    while (heard < 0 && errno == EINTR);  // Ctrl-C goes to mpirun, too, which ends in its own way
    if (heard < 0) error = errno;
    close(errors[0]);
    if (error == 0) return;
    if (pid_ > 0) waitpid(pid_, nullptr, 0);
    close_sources();
    throw_error<InvalidInput>("[launch] cannot start {}: {}; install openmpi-bin", words[0],
                              std::strerror(error));
  }
  ~Mpirun() { close_sources(); }

  pid_t pid() const { return pid_; }
  int status() const { return status_; }
  const std::string& text() const { return text_; }

  /// Waits a moment for output and passes it on as it comes (progress bars have no line ends).
  /// False when mpirun has ended.
  bool attend(std::chrono::milliseconds moment) {
    // poll() passes over what is negative, and waits for nobody else then.
    pollfd waiting[] = {{results_.ended ? -1 : results_.descriptor, POLLIN, 0},
                        {remarks_.ended ? -1 : remarks_.descriptor, POLLIN, 0}};
    ::poll(waiting, 2, static_cast<int>(moment.count()));
    const bool ended = waitpid(pid_, &status_, WNOHANG) == pid_;
    pass_on();
    return !ended;
  }

 private:
  /// Results by way of our own stdout, so that we know where they get lost.
  void pass_on() {
    constexpr size_t kMostText = 1 << 16;
    results_.read_all(write_out);
    flush_out();
    remarks_.read_all([this](std::string_view part) {
      write_error(part);
      text_ += part;
      if (text_.size() > 2 * kMostText) text_.erase(0, text_.size() - kMostText);
    });
  }

  void close_sources() {
    for (const Source& source : {results_, remarks_}) close(source.descriptor);
  }

  pid_t pid_ = -1;
  int status_ = 0;
  Source results_;  // mpirun's stdout, with that of the ranks
  Source remarks_;  // its stderr
  std::string text_;
};

std::vector<RankRecord> read_records(const std::string& folder, int ranks) {
  std::vector<RankRecord> records;
  for (int rank = 0; rank < ranks; ++rank) records.push_back(read_record(folder, rank));
  return records;
}

bool here(const RankRecord& rank) {
  static const std::string host = this_host();
  return rank.pid > 0 && rank.host == host && !rank.exit_code;
}

bool trouble(const RankRecord& rank) {
  return rank.failure || (here(rank) && kill(rank.pid, 0) != 0 && errno == ESRCH);
}

void signal_ranks(const std::vector<RankRecord>& ranks, int signal) {
  for (const RankRecord& rank : ranks)
    if (here(rank)) kill(rank.pid, signal);
}

/// Once a rank is in trouble mpirun should end the job soon; where it does not, we do.
class Patience {
 public:
  explicit Patience(std::chrono::milliseconds limit) : limit_(limit) {}
  bool exhausted(const std::vector<RankRecord>& ranks) {
    if (!in_trouble_ && std::any_of(ranks.begin(), ranks.end(), trouble)) {
      in_trouble_ = true;
      since_ = Clock::now();
    }
    return in_trouble_ && Clock::now() - since_ > limit_;
  }

 private:
  std::chrono::milliseconds limit_;
  bool in_trouble_ = false;
  Clock::time_point since_;
};

/// The first signal goes to the ranks, the second ends mpirun and with it the ranks.
void pass_on_signal(int number, int signal, pid_t mpirun, const std::vector<RankRecord>& ranks) {
  bool any_here = false;
  for (const RankRecord& rank : ranks) any_here |= here(rank);
  if (number == 1 && any_here) return signal_ranks(ranks, signal);
  kill(mpirun, number <= 2 ? SIGTERM : SIGKILL);
  if (number > 2) signal_ranks(ranks, SIGKILL);
}

JobEnd wait_for_job(Mpirun& mpirun, const std::string& folder, int ranks,
                    const LaunchOptions& options) {
  JobEnd end;
  Patience patience(options.patience);
  int num_passed_on = 0;
  Clock::time_point next_look = Clock::now();
  while (mpirun.attend(std::chrono::milliseconds(50))) {
    const bool signalled = num_signals > num_passed_on;
    if (!signalled && Clock::now() < next_look) continue;
    next_look = Clock::now() + std::chrono::milliseconds(250);
    end.ranks = read_records(folder, ranks);
    if (signalled) {
      end.forwarded = last_signal.load();
      pass_on_signal(++num_passed_on, *end.forwarded, mpirun.pid(), end.ranks);
    }
    if (!patience.exhausted(end.ranks)) continue;
    kill(mpirun.pid(), SIGKILL);
    signal_ranks(end.ranks, SIGKILL);
  }
  end.ranks = read_records(folder, ranks);
  end.mpirun_text = mpirun.text();
  end.mpirun_status = mpirun.status();
  return end;
}

}  // namespace

int launch(int ranks, const std::vector<std::string>& command, const LaunchOptions& options) {
  if (ranks < 1) throw_error<InvalidInput>("[launch] {} ranks; use at least 1", ranks);
  if (command.empty()) throw_error<InvalidInput>("[launch] there is no command to start");
  const NotedSignals noted;
  const RecordFolder folder;
  Mpirun mpirun(command_line(ranks, command, options, folder.path()));
  const Verdict verdict = judge(wait_for_job(mpirun, folder.path(), ranks, options));
  for (const std::string& line : verdict.lines) print_error("tessera: {}\n", line);
  return verdict.exit_code;
}

}  // namespace tessera::mpi
