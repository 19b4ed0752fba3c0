#include "tessera/comm/mpi/verdict.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <regex>

#include "tessera/base/exit_code.h"

namespace tessera::mpi {
namespace {

bool is_ours(int exit_code) { return exit_code >= 0 && exit_code <= 4 && exit_code != kRankFailed; }

struct Death {
  int rank = 0;
  int signal = 0;
};

/// mpirun is the ranks' parent, so only it knows of which signal the first one died. The process id
/// that it names is sometimes 0; the rank's own record is better.
std::optional<Death> death_by_mpirun(const std::string& text) {
  static const std::regex kPattern(
      R"(process rank (\d+) with PID \d+ on node \S+ exited on signal (\d+))");
  // A terminal's width breaks its sentences into lines.
  const std::string line = std::regex_replace(text, std::regex(R"(\s+)"), " ");
  std::smatch match;
  if (!std::regex_search(line, match, kPattern)) return {};
  return Death{std::stoi(match[1]), std::stoi(match[2])};
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

/// The exit code that all ranks have, if they have one in common.
std::optional<int> common_exit_code(const JobEnd& end) {
  const auto& code = end.ranks.front().exit_code;
  const bool agree = std::all_of(end.ranks.begin(), end.ranks.end(),
                                 [&](const RankRecord& rank) { return rank.exit_code == code; });
  return agree ? code : std::nullopt;
}

/// Whether any rank has; those that only heard of its failure end with kRankFailed.
bool has_ended_with(int exit_code, const JobEnd& end) {
  return std::any_of(end.ranks.begin(), end.ranks.end(),
                     [&](const RankRecord& rank) { return rank.exit_code == exit_code; });
}

/// Ranks that differ from what a good end looks like, where nothing better is known.
std::vector<std::string> odd_ranks(const JobEnd& end) {
  std::vector<std::string> lines;
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
  const auto death = death_by_mpirun(end.mpirun_text);
  const auto* found = first_failure(end, FailureKind::kFound);
  const auto* aborted = first_failure(end, FailureKind::kAborted);
  const auto common = common_exit_code(end);
  if (common && is_ours(*common) && !found && !death) return {*common, {}};
  if (end.forwarded && !common && !found && !aborted)
    return {128 + *end.forwarded,
            {fmt::format("ended by signal {} ({})", *end.forwarded, strsignal(*end.forwarded))}};

  Verdict verdict{kRankFailed, {}};
  if (death)
    verdict.lines.push_back(fmt::format("rank {} (pid {}) was killed by signal {} ({})",
                                        death->rank, end.ranks.at(death->rank).pid, death->signal,
                                        strsignal(death->signal)));
  if (found) verdict.lines.push_back(found->text);
  if (!death && !found && aborted) {
    verdict.lines.push_back(aborted->text);
    if (has_ended_with(kOutOfMemory, end)) verdict.exit_code = kOutOfMemory;
  }
  if (!verdict.lines.empty()) return verdict;

  const bool nobody_came = std::all_of(end.ranks.begin(), end.ranks.end(),
                                       [](const RankRecord& rank) { return rank.pid == 0; });
  const int status = end.mpirun_status;
  // They ended before they took part in anything: what mpirun saw is all there is.
  if (nobody_came && WIFEXITED(status) && is_ours(WEXITSTATUS(status)))
    return {WEXITSTATUS(status), {}};
  verdict.lines = odd_ranks(end);
  if (verdict.lines.empty()) verdict.lines.push_back("mpirun failed; see its message");
  return verdict;
}

}  // namespace tessera::mpi
