#include "tessera/comm/mpi/verdict.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string_view>

#include "tessera/base/exit_code.h"

namespace tessera::mpi {
namespace {

bool is_answer(int exit_code) {
  return exit_code == kOk || exit_code == kCheckFailed || exit_code == kBadInput ||
         exit_code == kOutOfMemory;
}

struct Death {
  int rank = 0;
  int signal = 0;
};

/// The number at the begin of `text`, and nothing of it left; at most six digits.
std::optional<int> take_number(std::string_view& text) {
  int number = 0;
  size_t digits = 0;
  for (; digits < text.size() && text[digits] >= '0' && text[digits] <= '9'; ++digits) {
    if (digits == 6) return {};
    number = 10 * number + (text[digits] - '0');
  }
  text.remove_prefix(digits);
  return digits > 0 ? std::optional(number) : std::nullopt;
}

/// A terminal's width breaks sentences into lines.
std::string with_single_spaces(const std::string& text) {
  std::string line;
  for (const char c : text) {
    const bool is_space = std::isspace(static_cast<unsigned char>(c));
    if (!is_space || line.empty() || line.back() != ' ') line += is_space ? ' ' : c;
  }
  return line;
}

/// "... rank 2 with PID 0 on node vm exited on signal 9 (Killed)", from after the word "rank".
std::optional<Death> parse_death(std::string_view text) {
  constexpr std::string_view kSignal = " exited on signal ";
  const auto rank = take_number(text);
  if (!rank || !text.starts_with(" with PID ")) return {};
  const size_t place = text.substr(0, 400).find(kSignal);
  if (place == std::string_view::npos) return {};
  text.remove_prefix(place + kSignal.size());
  const auto signal = take_number(text);
  if (!signal || *signal < 1 || *signal > 64) return {};
  return Death{*rank, *signal};
}

/// mpirun is the ranks' parent, so only it knows of which signal the first one died. The process id
/// that it names is sometimes 0; the rank's own record is better. A rank that has said how it ended
/// has not died, whatever the text says: others write there, too.
std::optional<Death> death_by_mpirun(const JobEnd& end) {
  constexpr std::string_view kRank = "process rank ";
  const std::string line = with_single_spaces(end.mpirun_text);
  for (size_t place = line.find(kRank); place != std::string::npos;
       place = line.find(kRank, place + 1)) {
    const auto death = parse_death(std::string_view(line).substr(place + kRank.size()));
    if (death && death->rank < std::ssize(end.ranks) && !end.ranks[death->rank].exit_code)
      return death;
  }
  return {};
}

/// The first in time of this kind.
const RankRecord::Failure* first_failure(const JobEnd& end, FailureKind kind) {
  const RankRecord::Failure* first = nullptr;
  for (const RankRecord& rank : end.ranks)
    if (rank.failure && rank.failure->kind == kind &&
        (!first || rank.failure->time_ns < first->time_ns))
      first = &*rank.failure;
  return first;
}

/// What the ranks say together, where all have said something. Rank 0 alone may have more to say
/// than 0: it compares and writes for all.
std::optional<int> common_answer(const JobEnd& end) {
  int answer = kOk;
  for (const RankRecord& rank : end.ranks) {
    if (!rank.exit_code || !is_answer(*rank.exit_code)) return {};
    if (*rank.exit_code == kOk) continue;
    if (answer != kOk && answer != *rank.exit_code) return {};
    answer = *rank.exit_code;
  }
  return answer;
}

bool all_have_ended(const JobEnd& end) {
  return std::all_of(end.ranks.begin(), end.ranks.end(),
                     [](const RankRecord& rank) { return rank.exit_code.has_value(); });
}

/// Whether any rank has; those that only heard of its failure end with kRankFailed.
bool has_ended_with(int exit_code, const JobEnd& end) {
  return std::any_of(end.ranks.begin(), end.ranks.end(),
                     [&](const RankRecord& rank) { return rank.exit_code == exit_code; });
}

/// "rank 3" or "ranks 3, 4, 7 and 12 more": those that never said that they are there.
std::string missing_ranks(const JobEnd& end) {
  constexpr size_t kMostNamed = 8;
  std::vector<std::string> missing;
  for (size_t i = 0; i < end.ranks.size(); ++i)
    if (end.ranks[i].pid == 0) missing.push_back(std::to_string(i));
  if (missing.empty()) return {};
  const size_t unnamed = missing.size() - std::min(missing.size(), kMostNamed);
  missing.resize(missing.size() - unnamed);
  return fmt::format("rank{} {}{}", missing.size() > 1 ? "s" : "", fmt::join(missing, ", "),
                     unnamed > 0 ? fmt::format(" and {} more", unnamed) : "");
}

std::string text_of(int signal) { return fmt::format("signal {} ({})", signal, strsignal(signal)); }

std::string end_of_mpirun(int status) {
  if (WIFSIGNALED(status)) return "mpirun was killed by " + text_of(WTERMSIG(status));
  if (WEXITSTATUS(status) == 0) return "mpirun ended";
  return fmt::format("mpirun ended with exit code {}", WEXITSTATUS(status));
}

/// Why ranks are missing or have not said how they ended, where nothing better is known.
std::vector<std::string> odd_ends(const JobEnd& end) {
  std::vector<std::string> lines;
  const std::string missing = missing_ranks(end);
  const bool nobody_came = std::all_of(end.ranks.begin(), end.ranks.end(),
                                       [](const RankRecord& rank) { return rank.pid == 0; });
  if (end.late_after)
    lines.push_back(fmt::format(
        "[launch] mpirun has not started {} within {} s, and was ended; see its message, or give "
        "it more time (--timeout)",
        missing, std::chrono::duration_cast<std::chrono::seconds>(*end.late_after).count()));
  else if (nobody_came)
    lines.push_back(
        fmt::format("[launch] {} without starting a rank; see its message, or try "
                    "`mpirun -n 1 true`",
                    end_of_mpirun(end.mpirun_status)));
  else if (!missing.empty())
    lines.push_back(
        fmt::format("[launch] {} without starting {}", end_of_mpirun(end.mpirun_status), missing));
  else if (end.was_stuck)
    lines.push_back("[launch] mpirun did not end after a rank had vanished, and was ended");
  else if (WIFSIGNALED(end.mpirun_status))
    lines.push_back("[launch] " + end_of_mpirun(end.mpirun_status));
  for (size_t i = 0; i < end.ranks.size(); ++i) {
    const RankRecord& rank = end.ranks[i];
    if (!rank.exit_code && rank.pid != 0)
      lines.push_back(fmt::format("rank {} (pid {}) ended without a word", i, rank.pid));
    else if (rank.exit_code && *rank.exit_code != 0)
      lines.push_back(
          fmt::format("rank {} (pid {}) ended with exit code {}", i, rank.pid, *rank.exit_code));
  }
  return lines;
}

}  // namespace

Verdict judge(const JobEnd& end) {
  const auto* found = first_failure(end, FailureKind::kFound);
  const auto* aborted = first_failure(end, FailureKind::kAborted);
  if (const auto answer = common_answer(end); answer && !found) return {*answer, {}};
  if (end.forwarded && !all_have_ended(end) && !aborted)
    return {128 + *end.forwarded, {"ended by " + text_of(*end.forwarded)}};

  Verdict verdict{kRankFailed, {}};
  if (const auto death = death_by_mpirun(end))
    verdict.lines.push_back(fmt::format("rank {} (pid {}) was killed by {}", death->rank,
                                        end.ranks[death->rank].pid, text_of(death->signal)));
  if (found) verdict.lines.push_back(found->text);
  if (verdict.lines.empty() && aborted) {
    verdict.lines.push_back(aborted->text);
    if (has_ended_with(kOutOfMemory, end)) verdict.exit_code = kOutOfMemory;
  }
  if (verdict.lines.empty()) verdict.lines = odd_ends(end);
  return verdict;
}

}  // namespace tessera::mpi
