#include "tests/attack/faults/workers.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tests/fault/train/run_files.h"

namespace tessera {
namespace {

using Json = nlohmann::json;
using PlayCase = std::function<CaseOutcome(uint64_t seed)>;

CaseOutcome play_safely(uint64_t seed, const PlayCase& play) {
  try {
    return play(seed);
  } catch (const std::exception& error) {
    return {seed, "the driver itself", false, error.what()};
  }
}

void print_outcome(const CaseOutcome& outcome, double seconds) {
  fmt::print("seed {}: {}: {} ({:.1f} s)\n{}", outcome.seed, outcome.name,
             outcome.skipped           ? "skipped"
             : outcome.account.empty() ? "ok"
                                       : "FAILED",
             seconds, outcome.account);
  std::fflush(stdout);
}

/// In a worker: every `num_workers`th case, one line of the file each.
void play_share(uint64_t first_seed, int64_t count, int worker, int num_workers,
                const PlayCase& play, const std::string& path) {
  using Clock = std::chrono::steady_clock;
  for (int64_t i = worker; i < count; i += num_workers) {
    const Clock::time_point begin = Clock::now();
    const CaseOutcome outcome = play_safely(first_seed + i, play);
    print_outcome(outcome, std::chrono::duration<double>(Clock::now() - begin).count());
    const Json line{{"seed", outcome.seed},
                    {"name", outcome.name},
                    {"skipped", outcome.skipped},
                    {"account", outcome.account}};
    // What a program prints need not be UTF-8.
    std::ofstream(path, std::ios::app)
        << line.dump(-1, ' ', true, Json::error_handler_t::replace) << "\n";
  }
}

std::vector<CaseOutcome> read_outcomes(const std::string& path) {
  std::vector<CaseOutcome> outcomes;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const Json json = Json::parse(line);
    outcomes.push_back({json.at("seed").get<uint64_t>(), json.at("name").get<std::string>(),
                        json.at("skipped").get<bool>(), json.at("account").get<std::string>()});
  }
  return outcomes;
}

}  // namespace

std::vector<CaseOutcome> play_cases(uint64_t first_seed, int64_t count, int num_workers,
                                    const PlayCase& play) {
  const TemporaryFolder folder;
  std::fflush(stdout);
  std::vector<pid_t> workers;
  const auto path_of = [&](int worker) { return fmt::format("{}/{}", folder.path(), worker); };
  for (int worker = 0; worker < num_workers; ++worker) {
    const pid_t pid = fork();
    if (pid < 0) throw std::runtime_error("cannot fork");
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      play_share(first_seed, count, worker, num_workers, play, path_of(worker));
      _exit(0);
    }
    workers.push_back(pid);
  }
  std::vector<CaseOutcome> outcomes;
  for (int worker = 0; worker < num_workers; ++worker) {
    int status = 0;
    waitpid(workers[worker], &status, 0);
    const std::vector<CaseOutcome> own = read_outcomes(path_of(worker));
    outcomes.insert(outcomes.end(), own.begin(), own.end());
    if (status != 0) {
      fmt::print("worker {} ended with status {}\n", worker, status);
      outcomes.push_back({0, "the driver itself", false, "a worker died"});
    }
  }
  return outcomes;
}

int64_t number_from_environment(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text && *text ? std::atoll(text) : otherwise;
}

}  // namespace tessera
