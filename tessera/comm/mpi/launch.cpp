#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "tessera/base/error.h"
#include "tessera/base/standard_streams.h"
#include "tessera/comm/mpi/batch.h"
#include "tessera/comm/mpi/mpi.h"
#include "tessera/comm/mpi/mpirun.h"
#include "tessera/comm/mpi/session.h"
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

/// mpirun with too few descriptors says so in its own words at best, and hangs at worst.
void allow_descriptors(int ranks) {
  const rlim_t needed = 32 + 4 * static_cast<rlim_t>(ranks);  // tried with Open MPI 4.1
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) return;
  const rlim_t allowed = limit.rlim_cur;
  limit.rlim_cur = std::min(needed, limit.rlim_max);
  if (limit.rlim_max >= needed && setrlimit(RLIMIT_NOFILE, &limit) == 0) return;
  throw_error<OutOfMemory>(
      "[launch] {} open files are allowed, and mpirun needs about {} for {} ranks; allow more "
      "(ulimit -n), or use --launch threads",
      allowed, needed, ranks);
}

std::vector<std::string> command_line(int ranks, const std::vector<std::string>& command,
                                      const LaunchOptions& options) {
  std::vector<std::string> words = {options.mpirun,
                                    "--allow-run-as-root",
                                    "--oversubscribe",
                                    "--bind-to",
                                    "none",
                                    "-x",
                                    kRecordFolderVariable,
                                    "-n",
                                    std::to_string(ranks)};
  words.insert(words.end(), options.mpirun_options.begin(), options.mpirun_options.end());
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

bool here(const RankRecord& rank) {
  static const std::string host = this_host();
  return rank.pid > 0 && rank.host == host && !rank.exit_code;
}

bool trouble(const RankRecord& rank) {
  return rank.failure || (here(rank) && kill(rank.pid, 0) != 0 && errno == ESRCH);
}

bool has_ended(const RankRecord& rank) { return rank.exit_code.has_value(); }

void signal_ranks(const std::vector<RankRecord>& ranks, int signal) {
  for (const RankRecord& rank : ranks)
    if (here(rank)) kill(rank.pid, signal);
}

/// Once a rank is in trouble, or all have said how they end, mpirun should end the job soon; where
/// it does not, we do.
class Patience {
 public:
  explicit Patience(std::chrono::milliseconds limit) : limit_(limit) {}
  bool exhausted(const std::vector<RankRecord>& ranks) {
    if (!is_due_ && (std::any_of(ranks.begin(), ranks.end(), trouble) ||
                     std::all_of(ranks.begin(), ranks.end(), has_ended))) {
      is_due_ = true;
      since_ = Clock::now();
    }
    return is_due_ && Clock::now() - since_ > limit_;
  }

 private:
  std::chrono::milliseconds limit_;
  bool is_due_ = false;
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

/// How long nobody has said that it is there, while somebody still has to.
class StartWatch {
 public:
  explicit StartWatch(std::chrono::milliseconds limit) : limit_(limit) {}
  bool exhausted(const std::vector<RankRecord>& ranks) {
    const auto missing = std::count_if(ranks.begin(), ranks.end(),
                                       [](const RankRecord& rank) { return rank.pid == 0; });
    if (missing != num_missing_) last_start_ = Clock::now();
    num_missing_ = missing;
    return missing > 0 && Clock::now() - last_start_ > limit_;
  }

 private:
  std::chrono::milliseconds limit_;
  int64_t num_missing_ = -1;
  Clock::time_point last_start_;
};

JobEnd wait_for_job(Mpirun& mpirun, const RecordFolder& records, const LaunchOptions& options) {
  JobEnd end;
  Patience patience(options.patience);
  StartWatch starting(options.start_limit);
  int num_passed_on = 0;
  Clock::time_point next_look = Clock::now();
  while (mpirun.attend(std::chrono::milliseconds(50))) {
    const bool signalled = num_signals > num_passed_on;
    if (!signalled && Clock::now() < next_look) continue;
    next_look = Clock::now() + std::chrono::milliseconds(250);
    end.ranks = records.read();
    if (signalled) {
      end.forwarded = last_signal.load();
      pass_on_signal(++num_passed_on, *end.forwarded, mpirun.pid(), end.ranks);
    }
    if (starting.exhausted(end.ranks)) end.late_after = options.start_limit;
    if (!end.late_after && !patience.exhausted(end.ranks)) continue;
    end.was_stuck = true;
    end_session(mpirun.pid(), {});
  }
  // Ranks without their mpirun end by themselves, or not at all.
  end.ranks = records.read();
  const bool some_came = std::any_of(end.ranks.begin(), end.ranks.end(),
                                     [](const RankRecord& rank) { return rank.pid != 0; });
  end_session(mpirun.pid(), some_came ? options.patience : std::chrono::milliseconds(0));
  mpirun.pass_on();
  end.ranks = records.read();
  end.mpirun_text = mpirun.text();
  end.mpirun_status = mpirun.status();
  return end;
}

}  // namespace

int launch(int ranks, const std::vector<std::string>& command, const LaunchOptions& options) {
  if (ranks < 1) throw_error<InvalidInput>("[launch] {} ranks; use at least 1", ranks);
  if (command.empty()) throw_error<InvalidInput>("[launch] there is no command to start");
  allow_descriptors(ranks);
  const NotedSignals noted;
  const RecordFolder records(ranks);
  const auto network =
      options.mpirun_options.empty() ? Mpirun::Network::kPrivate : Mpirun::Network::kShared;
  Mpirun mpirun(command_line(ranks, command, options),
                fmt::format("{}={}", kRecordFolderVariable, records.path()), network);
  const Verdict verdict = judge(wait_for_job(mpirun, records, options));
  for (const std::string& line : verdict.lines) print_error("tessera: {}\n", line);
  return verdict.exit_code;
}

}  // namespace tessera::mpi
